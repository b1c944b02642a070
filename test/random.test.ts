/**
 * Random numbers: known answers of the generator, repeatable by key and counter, even, and unrelated under
 * neighbouring keys; and the environments' draws by address, which must never change.
 */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { randomBaseline, runBaseline } from "../src/environment/baselines.ts";
import { below, fillUniform, purpose, word } from "../src/environment/draws.ts";
import { GraphEnvironment } from "../src/environment/graphEnvironment.ts";
import { sampleGraphSets } from "../src/environment/sampler.ts";
import { cast, input, mul, randomMask, type Tensor, where } from "../src/graph/index.ts";
import {
  bits,
  fillMask,
  integer,
  keyOf,
  normal,
  permutation,
  type RandomKey,
  threefry,
  uniform,
} from "../src/random.ts";
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

describe("threefry", () => {
  // The known-answer vectors of the Random123 library for threefry2x32 with 20 rounds.
  test.each([
    { key: [0, 0], counter: [0, 0], want: [0x6b200159, 0x99ba4efe] },
    {
      key: [0xffffffff, 0xffffffff],
      counter: [0xffffffff, 0xffffffff],
      want: [0x1cb996fc, 0xbb002be7],
    },
    {
      key: [0x13198a2e, 0x03707344],
      counter: [0x243f6a88, 0x85a308d3],
      want: [0xc4923a9c, 0x483df7a0],
    },
  ])("gives the published words for key $key", ({ key, counter, want }) => {
    const words = new Int32Array(2);
    threefry(words, key[0]!, key[1]!, counter[0]!, counter[1]!);
    expect([...new Uint32Array(words.buffer)]).toEqual(want);
  });

  test("goes on with the following counters, past the end of the 32 bits too", () => {
    const whole = new Int32Array(10);
    threefry(whole, 3, 5, 0xffffffff - 2, 7);
    const one = new Int32Array(2);
    for (let i = 0; i < 5; i++) {
      threefry(one, 3, 5, 0xffffffff - 2 + i, 7);
      expect([...whole.subarray(2 * i, 2 * i + 2)]).toEqual([...one]);
    }
  });
});

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
    expect([0, 1, 2, 1_000_000, 2 ** 40].map((i) => bits(key, i))).toEqual([
      4156431518, 3981719218, 272424086, 2039693064, 2721263227,
    ]);
    const words = new Int32Array(2);
    threefry(words, key.a, key.b, 7, 0);
    const [first, second] = new Uint32Array(words.buffer);
    expect(bits(key, 7)).toBe(first);
    const radius = Math.sqrt(-2 * Math.log((first! + 1) / 4294967297));
    expect(normal(key, 7)).toBeCloseTo(radius * Math.cos((2 * Math.PI * second!) / 4294967296), 12);
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
      ["ab"],
      ["ab\0"],
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

  test("ones and zeros at the rate asked for, in each of the eight places of a draw", () => {
    for (const keep of [0.002, 0.05, 0.3, 0.5, 0.501, 0.9, 0.999]) {
      const mask = maskOf(4 * draws, keep);
      expect(new Set(mask)).toEqual(new Set([0, 1]));
      for (let place = 0; place < 8; place++) {
        const ones = mask.reduce((total, x, i) => total + (i % 8 === place ? x : 0), 0);
        const n = draws / 2;
        // Five standard deviations of n tosses, and the 2^-17 by which the probability is rounded.
        const bound = 5 * Math.sqrt(n * keep * (1 - keep)) + n / 2 ** 17;
        expect(Math.abs(ones - n * keep), `keep ${keep}, place ${place}`).toBeLessThan(bound);
      }
    }
  });

  test("keep 1 keeps everything", () => {
    expect(maskOf(1001, 1).every((x) => x === 1)).toBe(true);
  });

  // Upper bytes below, at and above 128, with and without a lower byte; 0.001 rounds to 66 of 65,536.
  test.each([0.001, 0.3, 0.4999, 0.5, 0.501, 0.75, 0.9, 0.9999])(
    "keep %d: an element is kept where its two bytes, the upper from a shared draw, are below the rate",
    (keep) => {
      const key = keyOf(9, "mask");
      const words = new Int32Array(2);
      const threshold = Math.round(keep * 0x10000);
      const mask = maskOf(9001, keep, key);
      for (let i = 0; i < mask.length; i++) {
        threefry(words, key.a, key.b, i >> 3, 0);
        const upper = (words[(i >> 2) & 1]! >>> (8 * (i & 3))) & 0xff;
        threefry(words, key.a, key.b, i, 1);
        const bytes = 256 * upper + (words[0]! & 0xff);
        expect(mask[i], `element ${i}`).toBe(bytes < threshold ? 1 : 0);
      }
    },
  );

  test("neighbouring elements of a draw are independent", () => {
    const mask = maskOf(4 * draws, 0.5);
    const fours = histogram((i) => Number.parseInt(mask.subarray(4 * i, 4 * i + 4).join(""), 2), 16);
    expect(chiSquare(fours, draws / 16)).toBeLessThan(chiSquareLimit(15));
  });

  test("a longer mask begins like a shorter one, odd lengths included", () => {
    for (const size of [1, 3, 7, 64, 2047, 2049, 5001]) {
      expect(maskOf(size, 0.3)).toEqual(maskOf(9000, 0.3).slice(0, size));
    }
  });

  test("a rate outside (0, 1] is refused when the graph is built", () => {
    for (const keep of [0, -0.1, 1.1, Number.NaN]) {
      expect(() => randomMask("m", [3], keep)).toThrow(`randomMask: keep must be in (0, 1], got ${keep}`);
    }
  });
});

describe("a permutation", () => {
  test("has every number once, each about equally often in every place", () => {
    const counts = new Float64Array(25);
    for (let seed = 0; seed < 4000; seed++) {
      const order = permutation(keyOf(seed, "order", 1), 5);
      expect([...order].sort()).toEqual([0, 1, 2, 3, 4]);
      order.forEach((item, place) => {
        counts[item * 5 + place]!++;
      });
    }
    // 800 expected per cell, standard deviation about 25: five of them.
    for (const count of counts) expect(Math.abs(count - 800)).toBeLessThan(127);
  });
});

describe("a draw of an environment", () => {
  const address = fc.tuple(
    fc.nat(0xffffffff),
    fc.constantFrom(...Object.values(purpose)),
    fc.nat(0xffffffff),
    fc.nat(1000),
    fc.nat(1000),
  );

  test("is the first word for the key (seed, purpose and step) and the counter (episode, agent)", () => {
    const words = new Int32Array(2);
    fc.assert(
      fc.property(address, ([seed, use, episode, step, agent]) => {
        threefry(words, seed, use * 2 ** 24 + step, episode, agent);
        expect(word(seed, use, episode, step, agent)).toBe(words[0]! >>> 0);
      }),
    );
  });

  // The scores of trained agents are on these graphs, places and actions.
  test("gives the graphs, places and actions of a seed that it always gave", () => {
    const sha256 = ({ buffer }: { buffer: ArrayBufferLike }): string =>
      createHash("sha256").update(new Uint8Array(buffer)).digest("hex");
    const { train, test: held } = sampleGraphSets(666);
    expect(sha256(held.next)).toBe("e6d39f0e67d4596fcdd7abc35698193bc9bb361176230dc0053a2cdb7799695d");
    expect(sha256(train.next)).toBe("df2f514dd16c3f0f463e12a8a18285f58437b850fe7a14f4b27efb397a68e359");
    const noise = new Float32Array(600);
    fillUniform(noise, 666, purpose.testAction, 3, 17);
    expect(sha256(noise)).toBe("39a698b97f34b430a666337fc7bbece3d4b9c4cab86289aec4dc1a50f86f0553");
    const environment = new GraphEnvironment({ graphs: held, seed: 666, split: "test", rules: "released" });
    runBaseline(environment, 5, randomBaseline(666, "test"));
    const { agentAt, rewardAt, returns } = environment;
    expect(sha256(agentAt)).toBe("bc8b358886f6d36e4d84bb957237e331105e9459f59a9cd616dcc37b069efd1e");
    expect(sha256(rewardAt)).toBe("cf7cb026086efcd46e3a013afc25d90d9a69e8a7d0940e8d266ac2ddf67f78c3");
    expect(sha256(returns)).toBe("bf8fd6554d17538431076c7ddc56caf519ef127fb3c8af58132c297cd23baa4b");
  });

  test("depends on its address alone, whatever was drawn before", () => {
    fc.assert(
      fc.property(fc.array(address, { minLength: 2, maxLength: 20 }), (addresses) => {
        const forwards = addresses.map((a) => word(...a));
        const backwards = addresses.toReversed().map((a) => word(...a));
        expect(backwards.toReversed()).toEqual(forwards);
      }),
    );
  });

  test("differs when any one part of the address differs", () => {
    const base = [1, purpose.trainPlaces, 2, 3, 4] as const;
    const words = [
      word(...base),
      word(2, base[1], base[2], base[3], base[4]),
      word(base[0], purpose.testPlaces, base[2], base[3], base[4]),
      word(base[0], base[1], 3, base[3], base[4]),
      word(base[0], base[1], base[2], 4, base[4]),
      word(base[0], base[1], base[2], base[3], 5),
    ];
    expect(new Set(words).size).toBe(words.length);
  });

  test.each([3, 4, 5, 16, 20])("spreads evenly over %i values along every part of the address", (n) => {
    const along: Record<string, (i: number) => number> = {
      seed: (i) => below(n, i, purpose.graph, 0, 0, 0),
      episode: (i) => below(n, 7, purpose.graph, i, 0, 0),
      step: (i) => below(n, 7, purpose.graph, 0, i, 0),
      agent: (i) => below(n, 7, purpose.graph, 0, 0, i),
    };
    for (const [part, value] of Object.entries(along)) {
      expect(chiSquare(histogram(value, n), draws / n), part).toBeLessThan(chiSquareLimit(n - 1));
    }
  });

  test("fills uniform numbers of [0, 1) agent by agent", () => {
    const long = new Float32Array(10_000);
    fillUniform(long, 5, purpose.trainAction, 8, 2);
    const short = new Float32Array(7);
    fillUniform(short, 5, purpose.trainAction, 8, 2);
    expect(short).toEqual(long.slice(0, 7));
    expect(Math.min(...long)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...long)).toBeLessThan(1);
  });

  test("has means that scatter as means of uniform numbers do", () => {
    const numbers = new Float32Array(1000);
    let squares = 0;
    const addresses = 1000;
    for (let i = 0; i < addresses; i++) {
      fillUniform(numbers, Math.floor(i / 10) % 5, purpose.trainAction, Math.floor(i / 50), i % 10);
      const mean = numbers.reduce((sum, u) => sum + u, 0) / numbers.length;
      squares += (mean - 0.5) ** 2 * 12 * numbers.length;
    }
    // A mean of squared standard normals: 1, with standard deviation sqrt(2 / 1000) = 0.045.
    expect(Math.abs(squares / addresses - 1)).toBeLessThan(0.18);
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
