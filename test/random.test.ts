/** Random numbers: repeatable by key and counter, even, and unrelated under neighbouring keys. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cast, input, mul, randomMask, type Tensor, where } from "../src/graph/index.ts";
import { bits, fillMask, integer, keyOf, normal, type RandomKey, uniform } from "../src/random.ts";
import { nodeRuntime } from "../src/runtime/node.ts";
import { compile } from "../src/runtime/program.ts";

/** Σ (seen - expected)² / expected */
function chiSquare(counts: ArrayLike<number>, expected: number): number {
  return Array.from(counts).reduce((total, seen) => total + (seen - expected) ** 2 / expected, 0);
}

/**
 * The value chi-square exceeds once in a million draws, by Wilson and Hilferty's approximation (z = 4.75). The
 * keys are fixed, so a test that passes once passes always; the bound is wide so that no lucky key is needed.
 */
function chiSquareLimit(degrees: number): number {
  const spread = 2 / (9 * degrees);
  return degrees * (1 - spread + 4.75 * Math.sqrt(spread)) ** 3;
}

const draws = 1 << 16;

function histogram(value: (i: number) => number, bins: number): Uint32Array {
  const counts = new Uint32Array(bins);
  for (let i = 0; i < draws; i++) counts[value(i)]!++;
  return counts;
}

describe("repeatable", () => {
  test("the same key and counter give the same draw, in any order", () => {
    fc.assert(
      fc.property(fc.integer(), fc.string(), fc.nat(1e9), fc.nat(1e6), (seed, name, step, counter) => {
        const first = bits(keyOf(seed, name, step), counter);
        bits(keyOf(seed, name, step), counter + 1);
        expect(bits(keyOf(seed, name, step), counter)).toBe(first);
        expect(first).toBe(first >>> 0);
      }),
      { seed: 3 },
    );
  });

  // A change of these numbers changes every run ever made: resuming an old one would not continue it.
  test("the draws of a known key stay what they are", () => {
    const key = keyOf(1, "mask", "h", 7);
    expect([0, 1, 2, 1_000_000].map((i) => bits(key, i))).toEqual([
      3610039942, 722239866, 2763034338, 2881301964,
    ]);
    const radius = Math.sqrt(-2 * Math.log(3610039943 / 4294967297));
    expect(normal(key, 0)).toBeCloseTo(radius * Math.cos((2 * Math.PI * 722239866) / 4294967296), 12);
  });

  test("every part of a path counts, and so does its order and where one part ends", () => {
    const paths = [
      [1, 2],
      [2, 1],
      [1],
      [1, 0],
      ["1", 2],
      ["ab", "c"],
      ["a", "bc"],
      ["abc"],
      [-1],
      [0xffff_ffff],
      [2 ** 32],
      [2 ** 33],
      [0],
      [],
    ];
    const keys = paths.map((path) => keyOf(...path)).map(({ a, b }) => `${a},${b}`);
    expect(new Set(keys).size).toBe(paths.length);
  });
});

describe("even", () => {
  const key = keyOf(42, "even");

  test("each of the 32 bits is set half of the time", () => {
    for (let bit = 0; bit < 32; bit++) {
      const ones = histogram((i) => (bits(key, i) >>> bit) & 1, 2);
      expect(chiSquare(ones, draws / 2), `bit ${bit}`).toBeLessThan(chiSquareLimit(1));
    }
  });

  test("256 bins of [0, 1), the leading and the trailing byte, and pairs of draws", () => {
    const limit = chiSquareLimit(255);
    const bins: Record<string, (i: number) => number> = {
      "bins of uniform": (i) => Math.floor(uniform(key, i) * 256),
      "trailing byte": (i) => bits(key, i) & 255,
      // Four bits of a draw and four of the next: neighbours in one stream.
      pairs: (i) => ((bits(key, i) >>> 28) << 4) | (bits(key, i + 1) >>> 28),
      "distant pairs": (i) => ((bits(key, i) >>> 28) << 4) | (bits(key, i + 4096) >>> 28),
    };
    for (const [name, bin] of Object.entries(bins)) {
      expect(chiSquare(histogram(bin, 256), draws / 256), name).toBeLessThan(limit);
    }
  });

  test("integers below a bound that is no power of two", () => {
    expect(
      chiSquare(
        histogram((i) => integer(key, i, 20), 20),
        draws / 20,
      ),
    ).toBeLessThan(chiSquareLimit(19));
  });

  test("normal draws have the moments and the tails of N(0, 1)", () => {
    const values = Float64Array.from({ length: draws }, (_, i) => normal(key, i));
    const moment = (k: number): number => values.reduce((total, x) => total + x ** k, 0) / draws;
    // Standard errors: √(1/n), √(2/n), √(15/n), √(96/n) with n = 65,536; five of them are allowed.
    const error = 5 / Math.sqrt(draws);
    expect(Math.abs(moment(1))).toBeLessThan(error);
    expect(Math.abs(moment(2) - 1)).toBeLessThan(error * Math.sqrt(2));
    expect(Math.abs(moment(3))).toBeLessThan(error * Math.sqrt(15));
    expect(Math.abs(moment(4) - 3)).toBeLessThan(error * Math.sqrt(96));
    const beyond = values.filter((x) => Math.abs(x) > 2).length / draws;
    expect(Math.abs(beyond - 0.0455)).toBeLessThan(5 * Math.sqrt((0.0455 * 0.9545) / draws));
    expect(values.every(Number.isFinite)).toBe(true);
  });
});

describe("unrelated under neighbouring keys", () => {
  const neighbours: Record<string, [RandomKey, RandomKey]> = {
    "seeds 1 and 2": [keyOf(1, "mask", "h", 0), keyOf(2, "mask", "h", 0)],
    "steps 7 and 8": [keyOf(1, "mask", "h", 7), keyOf(1, "mask", "h", 8)],
    "names h and i": [keyOf(1, "mask", "h", 0), keyOf(1, "mask", "i", 0)],
    "names w1 and w2": [keyOf(0, "state", "w1"), keyOf(0, "state", "w2")],
  };
  for (const [name, [first, second]] of Object.entries(neighbours)) {
    test(name, () => {
      // Together the top four bits of both streams fill 256 bins evenly, also with one stream moved along.
      for (const shift of [0, 1, 2, 100]) {
        const joint = histogram(
          (i) => ((bits(first, i) >>> 28) << 4) | (bits(second, i + shift) >>> 28),
          256,
        );
        expect(chiSquare(joint, draws / 256), `shift ${shift}`).toBeLessThan(chiSquareLimit(255));
      }
      // Each bit differs half of the time.
      for (let bit = 0; bit < 32; bit++) {
        const differ = histogram((i) => ((bits(first, i) ^ bits(second, i)) >>> bit) & 1, 2);
        expect(chiSquare(differ, draws / 2), `bit ${bit}`).toBeLessThan(chiSquareLimit(1));
      }
    });
  }

  test("the first draws of consecutive keys are even too", () => {
    const first = histogram((step) => bits(keyOf(1, "mask", "h", step), 0) >>> 24, 256);
    expect(chiSquare(first, draws / 256)).toBeLessThan(chiSquareLimit(255));
    const bySeed = histogram((seed) => bits(keyOf(seed, "state", "W"), 0) >>> 24, 256);
    expect(chiSquare(bySeed, draws / 256)).toBeLessThan(chiSquareLimit(255));
  });
});

describe("masks", () => {
  function maskOf(size: number, keep: number, key = keyOf(9, "mask")): Uint8Array {
    const mask = new Uint8Array(size).fill(255);
    fillMask(mask, keep, key);
    return mask;
  }

  test("ones and zeros at the rate asked for, at even and odd positions alike", () => {
    for (const keep of [0.05, 0.3, 0.5, 0.9, 0.999]) {
      const mask = maskOf(draws, keep);
      expect(new Set(mask)).toEqual(new Set([0, 1]));
      for (const parity of [0, 1]) {
        const ones = mask.reduce((total, x, i) => total + (i % 2 === parity ? x : 0), 0);
        const n = draws / 2;
        // Five standard deviations of n tosses, and the 2^-17 by which the probability is rounded.
        const bound = 5 * Math.sqrt(n * keep * (1 - keep)) + n / 2 ** 17;
        expect(Math.abs(ones - n * keep), `keep ${keep}, parity ${parity}`).toBeLessThan(bound);
      }
    }
  });

  test("keep 1 keeps everything", () => {
    expect(maskOf(1001, 1).every((x) => x === 1)).toBe(true);
  });

  test("the two elements of one draw are independent", () => {
    const mask = maskOf(2 * draws, 0.5);
    const pairs = histogram((i) => 2 * mask[2 * i]! + mask[2 * i + 1]!, 4);
    expect(chiSquare(pairs, draws / 4)).toBeLessThan(chiSquareLimit(3));
  });

  test("a longer mask begins like a shorter one, odd lengths included", () => {
    for (const size of [1, 3, 7, 64]) expect(maskOf(size, 0.5)).toEqual(maskOf(1000, 0.5).slice(0, size));
  });

  test("a rate outside (0, 1] is refused when the graph is built", () => {
    for (const keep of [0, -0.1, 1.1, Number.NaN]) {
      expect(() => randomMask("m", [3], keep)).toThrow(`randomMask: keep must be in (0, 1], got ${keep}`);
    }
  });
});

describe("dropout in a program", () => {
  async function program() {
    const x = input("x", [64]);
    const dropped = (name: string): Tensor => where(randomMask(name, [64], 0.5), mul(x, 2), 0);
    const compiled = await compile(
      {
        outputs: {
          a: dropped("maskA"),
          b: dropped("maskB"),
          mask: cast(randomMask("maskC", [64], 0.5), "f32"),
        },
      },
      { runtime: nodeRuntime, threads: 1 },
    );
    const ones = new Float32Array(64).fill(1);
    const run = async (seed: number, step: number) => {
      const { a, b, mask } = await compiled.run({ x: ones }, { seed, step });
      return {
        a: Array.from(a as Float32Array),
        b: Array.from(b as Float32Array),
        mask: Array.from(mask as Float32Array),
      };
    };
    return { compiled, run, ones };
  }

  test("the same seed and step draw the same masks, whatever ran between, in another program too", async () => {
    const [first, second] = [await program(), await program()];
    const at = await first.run(1, 10);
    const other = await first.run(1, 11);
    expect(await first.run(1, 10)).toEqual(at);
    expect(await second.run(1, 10)).toEqual(at);
    expect(other.a).not.toEqual(at.a);
    expect((await first.run(2, 10)).a).not.toEqual(at.a);
    expect(at.a).not.toEqual(at.b);
    expect(new Set(at.a)).toEqual(new Set([0, 2]));
    await Promise.all([first.compiled.release(), second.compiled.release()]);
  });

  test("without a key there is nothing to draw under", async () => {
    const { compiled, ones } = await program();
    await expect(compiled.run({ x: ones })).rejects.toThrow(
      "run: the program draws dropout masks and needs a key { seed, step }",
    );
    await compiled.release();
  });
});
