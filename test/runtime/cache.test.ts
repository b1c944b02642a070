/** Programs cached by shape: compiled once, the least recently used let go. */
import { expect, test } from "vitest";
import { input, mul } from "../../src/graph/index.ts";
import { ProgramCache } from "../../src/runtime/cache.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { compile, type Program } from "../../src/runtime/program.ts";

test("a shape is compiled once while it is kept; the oldest goes and can come back", async () => {
  const cache = new ProgramCache(2);
  const compiled: number[] = [];
  const doubler = (size: number): Promise<Program> =>
    cache.get(`${size}`, () => {
      compiled.push(size);
      return compile({ outputs: { y: mul(input("x", [size]), 2) } }, { runtime: nodeRuntime, threads: 1 });
    });
  const run = async (size: number): Promise<number[]> => {
    const program = await doubler(size);
    return Array.from((await program.run({ x: new Float32Array(size).fill(3) })).y as Float32Array);
  };
  expect(await run(1)).toEqual([6]);
  const first = await doubler(1);
  expect(await run(2)).toEqual([6, 6]);
  expect(await run(1)).toEqual([6]);
  expect(await run(3)).toEqual([6, 6, 6]); // 2 is the least recently used now, and goes
  expect(await doubler(1)).toBe(first);
  expect(await run(2)).toEqual([6, 6]);
  expect(compiled).toEqual([1, 2, 3, 2]);
  await expect(cache.get("bad", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await cache.release();
  await expect(first.run({ x: [1] })).rejects.toThrow("released");
});

test("a program that cannot be compiled spoils no other", async () => {
  const program = (release = () => undefined) => ({ release }) as unknown as Program;
  const cache = new ProgramCache(1);
  const failing = cache.get(
    "a",
    () => new Promise((_, refuse) => setTimeout(() => refuse(new Error("no a")), 5)),
  );
  const other = cache.get("b", () => Promise.resolve(program()));
  await expect(failing).rejects.toThrow("no a");
  await expect(other).resolves.toBeTruthy();
  await expect(cache.get("a", () => Promise.resolve(program()))).resolves.toBeTruthy();
});
