/**
 * TensorFlow.js on its WebAssembly backend, set up for Node: the ground both peers stand on.
 *
 * The backend has a SIMD build and a build with SIMD and threads. The library switches the threaded one off
 * in Node (its flag WASM_HAS_MULTITHREAD_SUPPORT is false there), and forcing the flag fails: the workers are
 * started from blob: addresses, which Node's worker threads do not take. So in Node it is SIMD on one thread,
 * and `threads` reports what the backend itself says.
 */
import { createRequire } from "node:module";
import { dirname, sep } from "node:path";
import { getThreadsCount, setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs-core";
// For its side effect: it registers the gradients, which the Node build of tfjs-core leaves out.
import "@tensorflow/tfjs-layers";

/** A benchmark peer: the same work as ours, written for another library. */
export interface Peer {
  /** Does the work once and gives its loss. */
  run(): Promise<number>;
  /** Frees every tensor the peer holds. */
  dispose(): void;
  /** Library, backend and instruction set, for the report. */
  readonly backend: string;
  /** Threads the backend computes on. */
  readonly threads: number;
}

let starting: Promise<Pick<Peer, "backend" | "threads">> | undefined;

/** Starts the backend, once per process, and says what it is. */
export function startTfjs(): Promise<Pick<Peer, "backend" | "threads">> {
  starting ??= (async () => {
    const main = createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm");
    setWasmPaths(dirname(main) + sep);
    if (!(await tf.setBackend("wasm")))
      throw new Error("internal: TensorFlow.js: the wasm backend did not start");
    await tf.ready();
    const simd = (await tf.env().getAsync("WASM_HAS_SIMD_SUPPORT")) === true;
    return {
      backend: `tfjs ${tf.version_core} ${tf.getBackend()}${simd ? " simd" : ""}`,
      threads: getThreadsCount(),
    };
  })();
  return starting;
}

/** Numbers from -scale to scale that are the same in every run and for every library (a keyed integer hash). */
export function fixedNumbers(length: number, scale: number, key: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => (fixedInteger(i, key) / 2 ** 31 - 1) * scale);
}

/** Whole numbers from 0 to n - 1 that are the same in every run. */
export function fixedIntegers(length: number, n: number, key: number): Int32Array {
  return Int32Array.from({ length }, (_, i) => Math.floor((fixedInteger(i, key) / 2 ** 32) * n));
}

/** 32 bits for a place and a key: two rounds of a multiply and shift mixer (lowbias32). */
function fixedInteger(place: number, key: number): number {
  return mix((mix(place + 1) ^ Math.imul(key + 1, 0x9e3779b9)) | 0) >>> 0;
}

function mix(bits: number): number {
  let x = bits;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return x ^ (x >>> 15);
}
