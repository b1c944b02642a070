/**
 * Builds the front-end: `vite build` the studio and the playground into dist/web, `vite build --mode site` the
 * playground alone into dist/site, a folder for any static host.
 */
import { join } from "node:path";
import { defineConfig } from "vite";

const here = import.meta.dirname;
const isolation = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default defineConfig(({ mode }) => {
  const site = mode === "site";
  return {
    root: site ? join(here, "playground") : here,
    // Every address is relative: the folder works wherever it is put.
    base: "./",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    assetsInclude: ["**/*.safetensors"],
    server: { headers: isolation },
    preview: { headers: isolation },
    // ONNX Runtime's own code apart from ours, as its other files are.
    worker: {
      format: "es",
      rolldownOptions: {
        output: { codeSplitting: { groups: [{ name: "ort", test: /onnxruntime-(web|common)/ }] } },
      },
    },
    build: {
      outDir: join(here, "..", site ? "dist/site" : "dist/web"),
      emptyOutDir: true,
      target: "es2023",
      // An inlined file would be a data: address, which the content security policy forbids.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 700,
      rolldownOptions: {
        checks: { pluginTimings: false },
        input: site
          ? join(here, "playground/index.html")
          : { studio: join(here, "index.html"), playground: join(here, "playground/index.html") },
      },
    },
  };
});
