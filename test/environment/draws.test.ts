/** Addressed random numbers: known answers, independence of history, and even spread. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { below, fillUniform, purpose, threefry, word } from "../../src/environment/draws.ts";

describe("threefry", () => {
  // The known-answer vectors of the Random123 library for threefry2x32 with 20 rounds, first word.
  it.each([
    { key: [0, 0], counter: [0, 0], want: 0x6b200159 },
    { key: [0xffffffff, 0xffffffff], counter: [0xffffffff, 0xffffffff], want: 0x1cb996fc },
    { key: [0x13198a2e, 0x03707344], counter: [0x243f6a88, 0x85a308d3], want: 0xc4923a9c },
  ])("gives the published word for key $key", ({ key, counter, want }) => {
    expect(threefry(key[0]!, key[1]!, counter[0]!, counter[1]!)).toBe(want);
  });
});

describe("a draw", () => {
  const address = fc.tuple(
    fc.nat(0xffffffff),
    fc.constantFrom(...Object.values(purpose)),
    fc.nat(0xffffffff),
    fc.nat(1000),
    fc.nat(1000),
  );

  it("depends on its address alone, whatever was drawn before", () => {
    fc.assert(
      fc.property(fc.array(address, { minLength: 2, maxLength: 20 }), (addresses) => {
        const forwards = addresses.map((a) => word(...a));
        const backwards = addresses.toReversed().map((a) => word(...a));
        expect(backwards.toReversed()).toEqual(forwards);
      }),
    );
  });

  it("differs when any one part of the address differs", () => {
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

  it.each([3, 4, 5, 16, 20])("spreads evenly over %i values along every part of the address", (n) => {
    const draws = 20_000;
    const along = [
      (i: number) => below(n, i, purpose.graph, 0, 0, 0),
      (i: number) => below(n, 7, purpose.graph, i, 0, 0),
      (i: number) => below(n, 7, purpose.graph, 0, i, 0),
      (i: number) => below(n, 7, purpose.graph, 0, 0, i),
    ];
    for (const draw of along) {
      const counts = new Array<number>(n).fill(0);
      for (let i = 0; i < draws; i++) counts[draw(i)]!++;
      const expected = draws / n;
      const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
      // Mean n - 1, variance 2 (n - 1): five standard deviations above the mean.
      expect(chiSquare).toBeLessThan(n - 1 + 5 * Math.sqrt(2 * (n - 1)));
    }
  });

  it("fills uniform numbers of [0, 1) agent by agent", () => {
    const long = new Float32Array(10_000);
    fillUniform(long, 5, purpose.trainAction, 8, 2);
    const short = new Float32Array(7);
    fillUniform(short, 5, purpose.trainAction, 8, 2);
    expect(short).toEqual(long.slice(0, 7));
    expect(Math.min(...long)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...long)).toBeLessThan(1);
  });

  it("has means that scatter as means of uniform numbers do", () => {
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
