/** Nobody but the studio's own pages, and programs of its user, is answered: each guard by what gets through without it. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { type About, type ApiFailure, limits, type RunsAnswer, routes } from "../../src/studio/api.ts";
import { allowedHosts, Buckets, isLoopback } from "../../src/studio/server/guard.ts";
import type { Studio } from "../../src/studio/server/studio.ts";
import { type Asked, record, scratch, send, studio, writeRun } from "./support.ts";

const folder = scratch("guard");
const runs = join(folder, "runs");
const pages = join(folder, "pages");
const secret = "a secret beside the folders";
const page = "<!doctype html><title>studio</title>";
const markup = "<img src=x onerror=alert(1)>";
writeRun(join(runs, "first"), record("catbabi-qa-fwm"));
writeRun(join(runs, markup), record("catbabi-qa-fwm", { note: "</script><script>alert(1)</script>" }));
mkdirSync(join(pages, "assets"), { recursive: true });
writeFileSync(join(pages, "index.html"), page);
writeFileSync(join(pages, "assets/main-0123abcd.js"), "export {};");
writeFileSync(join(pages, "notes.md"), secret);
writeFileSync(join(folder, "secret.txt"), secret);
writeRun(join(folder, "outside"), record("catbabi-qa-fwm", { note: secret }));
symlinkSync(join(folder, "outside"), join(runs, "linked"));

let running: Studio;
let port: number;
beforeAll(async () => {
  running = await studio({ runs, pages });
  ({ port } = running);
});

const about: Asked = { path: routes.about.path };
const post: Asked = { path: routes.compare.path, body: { runs: [] } };
const everyKind: readonly (readonly [string, Asked])[] = [
  ["a page", { path: "/" }],
  ["an answer", about],
  ["an action", post],
  ["the events", { path: routes.events.path }],
];

test("listens to this machine alone", async () => {
  expect(running.url).toBe(`http://127.0.0.1:${port}/`);
  expect((await send(port, about)).status).toBe(200);
  const others = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const other = others.find(({ internal, family }) => !internal && family === "IPv4")?.address;
  if (other === undefined) return;
  const socket = connect(port, other);
  await expect(
    new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject)),
  ).rejects.toThrow("ECONNREFUSED");
});

describe("a name that was made to point here (DNS rebinding)", () => {
  test.each(everyKind)("%s", async (_, asked) => {
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      "127.0.0.1",
    ]) {
      const { status, text } = await send(port, { ...asked, headers: { host } });
      expect(status, host).toBe(403);
      expect(text).not.toContain("first");
    }
  });

  test("the studio's own names are answered, in capitals too", async () => {
    for (const host of [`localhost:${port}`, `LOCALHOST:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      expect((await send(port, { ...about, headers: { host } })).status, host).toBe(200);
    }
  });
});

describe("a page of another site", () => {
  test.each(everyKind)("%s", async (_, asked) => {
    for (const origin of [
      "http://evil.example",
      "null",
      "https://127.0.0.1",
      `https://localhost:${port}`,
      "http://127.0.0.1:1",
    ]) {
      expect((await send(port, { ...asked, headers: { origin } })).status, origin).toBe(403);
    }
    // What an <img>, a <script> or a form there sends has no origin, but says where it comes from.
    for (const site of ["cross-site", "same-site"]) {
      expect((await send(port, { ...asked, headers: { "sec-fetch-site": site } })).status, site).toBe(403);
    }
  });

  test("may link to a page, not to an answer", async () => {
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect((await send(port, { path: "/", headers })).status).toBe(200);
    expect((await send(port, { ...about, headers })).status).toBe(403);
    expect((await send(port, { ...post, headers })).status).toBe(403);
  });

  test("is never told that it may (no CORS), whatever it asks", async () => {
    const headers = { origin: "http://evil.example", "access-control-request-method": "POST" };
    const answers = await Promise.all(
      everyKind.flatMap(([, asked]) => [
        send(port, { ...asked, headers }),
        send(port, { path: asked.path, method: "OPTIONS", headers }),
        send(port, { path: asked.path, method: "OPTIONS" }),
      ]),
    );
    for (const { status, headers: given } of answers) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(Object.keys(given).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  test("the studio's own origin is answered", async () => {
    const headers = { origin: `http://127.0.0.1:${port}`, "sec-fetch-site": "same-origin" };
    expect((await send(port, { ...post, headers })).status).toBe(200);
  });
});

describe("bodies", () => {
  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "",
    "application/jsonx",
  ])("of type %j are refused", async (type) => {
    expect((await send(port, { ...post, headers: { "content-type": type } })).status).toBe(415);
  });

  test("JSON with a charset is JSON", async () => {
    const headers = { "content-type": "application/json; charset=utf-8" };
    expect((await send(port, { ...post, headers })).status).toBe(200);
  });

  test("that are too large are refused, also if they do not say how large they are", async () => {
    const large = JSON.stringify({ runs: ["x".repeat(limits.bodyBytes)] });
    expect((await send(port, { path: post.path, raw: large })).status).toBe(413);
    const chunked = await send(port, {
      path: post.path,
      raw: large,
      headers: { "transfer-encoding": "chunked" },
    });
    expect(chunked.status).toBe(413);
  });

  test("other methods are not used", async () => {
    for (const method of ["PUT", "DELETE", "PATCH"]) {
      expect((await send(port, { ...about, method })).status).toBe(405);
    }
  });

  test.each([
    ["not JSON", "{"],
    ["another type", "[]"],
    ["an unknown name", '{"runs":[],"more":1}'],
    ["a prototype", '{"runs":[],"__proto__":{"polluted":true}}'],
    ["a constructor", '{"runs":[],"constructor":{"prototype":{"polluted":true}}}'],
    ["a value of another type", '{"runs":[1]}'],
    ["too many", JSON.stringify({ runs: Array(limits.runsPerRequest + 1).fill("first") })],
  ])("%s is one clear 400", async (_, raw) => {
    const { status, json } = await send(port, { path: post.path, raw });
    expect(status).toBe(400);
    expect(json<ApiFailure>().error.kind).toBe("usage");
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("queries are as strict", async () => {
    for (const path of [
      "/api/run",
      "/api/run?run=first&run=first",
      "/api/run?run=first&x=1",
      "/api/run?run=",
    ]) {
      expect((await send(port, { path })).status, path).toBe(400);
    }
  });
});

test("every answer, refusals too, forbids scripts from elsewhere, frames and guessing of types", async () => {
  const asked: Asked[] = [
    ...everyKind.slice(0, 3).map(([, each]) => each),
    { path: "/none" },
    { ...about, headers: { host: "evil.example" } },
  ];
  for (const each of asked) {
    const { headers } = await send(port, each);
    const policy = String(headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("script-src 'self' 'wasm-unsafe-eval';");
    expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|https?:|\*/);
    expect(headers).toMatchObject({
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
      "cross-origin-resource-policy": "same-origin",
    });
  }
});

describe("rates", () => {
  test("a bucket gives its burst, then what flows in", () => {
    let now = 0;
    const buckets = new Buckets({ burst: 3, perSecond: 2 }, () => now);
    const take = (key = "a"): boolean => buckets.take(key);
    expect([take(), take(), take(), take()]).toEqual([true, true, true, false]);
    expect(take("b")).toBe(true);
    now = 0.5;
    expect([take(), take()]).toEqual([true, false]);
    now = 100;
    expect([take(), take(), take(), take()]).toEqual([true, true, true, false]);
  });

  test("too many requests are told to wait", async () => {
    const limited = await studio({ runs, rate: { burst: 5, perSecond: 0.001 } });
    const answers = [];
    for (let i = 0; i < 7; i++) answers.push(await send(limited.port, about));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429, 429]);
    expect(answers[6]!.headers["retry-after"]).toBe("1");
  });
});

describe("a studio that other machines can reach", () => {
  let open: Studio;
  let token: string;
  beforeAll(async () => {
    open = await studio({ runs, pages, host: "0.0.0.0" });
    token = new URL(open.url).searchParams.get("token")!;
  });
  const own = (): Record<string, string> => ({ host: `127.0.0.1:${open.port}` });

  test("answers nothing without its token", async () => {
    expect(token.length).toBeGreaterThanOrEqual(32);
    for (const [, asked] of everyKind) {
      expect((await send(open.port, { ...asked, headers: own() })).status).toBe(401);
      const wrong = [
        { cookie: "fwm-studio=wrong" },
        { authorization: "Bearer wrong" },
        { authorization: token },
      ];
      for (const headers of wrong) {
        expect((await send(open.port, { ...asked, headers: { ...own(), ...headers } })).status).toBe(401);
      }
    }
    expect((await send(open.port, { path: "/?token=wrong", headers: own() })).status).toBe(401);
  });

  test("takes it once from the address and keeps it in a cookie that scripts cannot read", async () => {
    const { status, headers } = await send(open.port, { path: `/?token=${token}`, headers: own() });
    expect([status, headers.location]).toEqual([303, "/"]);
    const cookie = String(headers["set-cookie"]);
    expect(cookie).toMatch(/HttpOnly/);
    expect(cookie).toMatch(/SameSite=Strict/);
    const kept = { ...own(), cookie: cookie.split(";")[0]! };
    expect((await send(open.port, { ...about, headers: kept })).status).toBe(200);
    expect((await send(open.port, { ...post, headers: kept })).status).toBe(200);
    const bearer = { ...own(), authorization: `Bearer ${token}` };
    expect((await send(open.port, { ...about, headers: bearer })).status).toBe(200);
  });

  test("does not lead away with it", async () => {
    for (const path of ["//evil.example/", "/\\evil.example/", "///evil.example"]) {
      const { headers } = await send(open.port, { path: `${path}?token=${token}`, headers: own() });
      if (headers.location) expect(headers.location).toMatch(/^\/(?![/\\])/);
    }
  });

  test("still refuses foreign names and origins", async () => {
    const authorization = `Bearer ${token}`;
    const foreign = [{ host: "evil.example" }, { ...own(), origin: "http://evil.example" }];
    for (const headers of foreign) {
      expect((await send(open.port, { ...about, headers: { authorization, ...headers } })).status).toBe(403);
    }
  });

  test("knows which hosts are this machine alone", () => {
    expect(["127.0.0.1", "127.8.0.1", "localhost", "::1"].map(isLoopback)).toEqual([true, true, true, true]);
    const others = ["0.0.0.0", "::", "192.168.0.1", "127.0.0.1.evil.example", "10.0.0.1"];
    expect(others.map(isLoopback)).toEqual(others.map(() => false));
    expect(allowedHosts("127.0.0.1", 80)).toContain("localhost");
    expect(allowedHosts("::1", 4000)).toContain("[::1]:4000");
  });
});

describe("paths come from listings alone", () => {
  test("the listed files are served", async () => {
    expect((await send(port, { path: "/" })).text).toBe(page);
    const script = await send(port, { path: "/assets/main-0123abcd.js" });
    expect(script.headers["content-type"]).toContain("javascript");
    expect(script.headers["cache-control"]).toContain("immutable");
    const again = { "if-none-match": String(script.headers.etag) };
    expect((await send(port, { path: "/assets/main-0123abcd.js", headers: again })).status).toBe(304);
  });

  /** Parts that paths out of a folder are made of. */
  const parts = fc.constantFrom(
    ...[
      "..",
      ".",
      "/",
      "//",
      "\\",
      "%2e%2e",
      "%2e%2e%2f",
      "%252e",
      "%5c",
      "..%5c",
      "%2f",
      "%00",
      "\u0000",
      "~",
    ],
    ...["secret.txt", "outside", "run.json", "runs", "first", "linked", "pages", "notes.md", "etc", "passwd"],
    ...[
      "assets",
      "index.html",
      "__proto__",
      "constructor",
      "file:",
      "C:",
      "%c0%ae",
      "run:",
      "shipped:",
      "checkpoint-1",
    ],
    ...[folder, "catbabi-qa", "best", "last"],
  );
  const path = fc.oneof(
    fc.array(parts, { minLength: 1, maxLength: 8 }).map((each) => each.join("")),
    fc.array(parts, { minLength: 1, maxLength: 8 }).map((each) => each.join("/")),
    fc.string({ maxLength: 40 }),
  );

  test("no address leads out of the pages", async () => {
    await fc.assert(
      fc.asyncProperty(path, async (text) => {
        // What a client can put on the wire: no blanks, no control characters.
        const sent = `/${text}`.replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(char));
        const { status, text: answer } = await send(port, { path: sent.replaceAll("#", "%23") });
        expect(answer).not.toContain(secret);
        if (status === 200) expect([page, "export {};"]).toContain(answer);
      }),
      { numRuns: 400 },
    );
  });

  test("no name of a run, model, checkpoint or sweep leads out of the listings", async () => {
    const listed = (await send(port, { path: routes.runs.path })).json<RunsAnswer>();
    expect(listed.runs.map(({ name }) => name)).toEqual([markup, "first"]);
    await fc.assert(
      fc.asyncProperty(path, path, async (name, other) => {
        if (name === "first") return;
        const asked: Asked[] = [
          { path: `/api/run?run=${encodeURIComponent(name)}` },
          { path: `/api/sweep?sweep=${encodeURIComponent(name)}` },
          { path: routes.compare.path, body: { runs: [name] } },
          { path: routes.vocabulary.path, body: { model: { id: `run:${name}` } } },
          { path: routes.vocabulary.path, body: { model: { id: `shipped:../${name}` } } },
          { path: routes.vocabulary.path, body: { model: { id: "run:first", checkpoint: other } } },
          { path: routes.vocabulary.path, body: { model: { id: "shipped:catbabi-qa", checkpoint: other } } },
          { path: routes.trainResume.path, body: { run: name } },
          { path: routes.trainStop.path, body: { run: name } },
        ];
        for (const each of asked) {
          const { status, text } = await send(port, each);
          expect([400, 404, 409], JSON.stringify(each)).toContain(status);
          expect(text).not.toContain(secret);
        }
        const metrics = await send(port, {
          path: routes.metrics.path,
          body: { runs: [{ name }], points: 10 },
        });
        expect(metrics.text).not.toContain(secret);
        if (metrics.status === 200) expect(metrics.json<{ runs: unknown[] }>().runs).toEqual([]);
      }),
      { numRuns: 60 },
    );
    expect(running.pids()).toEqual([]);
  });

  test("a run is started under a plain name only", async () => {
    for (const name of [
      "../up",
      "a/b",
      ".hidden",
      "..",
      "-o",
      "a\\b",
      "a b",
      "",
      "x".repeat(200),
      "a\u0000",
    ]) {
      const body = { experiment: "catbabi-qa-fwm", name };
      for (const { path } of [routes.trainCheck, routes.trainStart]) {
        expect((await send(port, { path, body })).status, name).toBe(400);
      }
    }
    expect(readdirSync(folder).sort()).toEqual(["outside", "pages", "runs", "secret.txt"]);
  });
});

test("texts of runs are JSON, never markup", async () => {
  const { headers, json } = await send(port, { path: `/api/run?run=${encodeURIComponent(markup)}` });
  expect(headers["content-type"]).toMatch(/^application\/json/);
  expect(json<{ run: { note: string } }>().run.note).toContain("<script>");
  for (const file of readdirSync(join(import.meta.dirname, "../../web"), {
    recursive: true,
    encoding: "utf8",
  })) {
    if (!/\.tsx?$/.test(file)) continue;
    const source = readFileSync(join(import.meta.dirname, "../../web", file), "utf8");
    expect(source, file).not.toMatch(
      /dangerouslySetInnerHTML|\.innerHTML|outerHTML|insertAdjacentHTML|document\.write/,
    );
  }
});

test("the server asks nobody: no outgoing requests in its sources", () => {
  const sources = join(import.meta.dirname, "../../src/studio");
  for (const file of readdirSync(sources, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts")) continue;
    const source = readFileSync(join(sources, file), "utf8").replace(/^import type .*$/gm, "");
    expect(source, file).not.toMatch(
      /(?<![.\w])fetch\(|node:https?"|node:net"|node:dns|XMLHttpRequest|WebSocket/,
    );
  }
});

test("a request that never ends its head is cut off", async () => {
  // The server's own limits; nothing is to be waited for.
  const { text } = await send(port, about);
  expect(JSON.parse(text) as About).toMatchObject({ version: "0.0.0" });
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`x-${i}`, "y".repeat(100)]));
  const status = await new Promise((resolve) => {
    request({ port, path: "/", headers: many }, (answer) => resolve(answer.statusCode))
      .on("error", resolve)
      .end();
  });
  expect(status).toBe(431);
});
