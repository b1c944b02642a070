/**
 * The comparison systems token by token in plain loops: their equations once more, sharing no code with the graph.
 * Each reads one row: weights by name, tokens, and gives the logits at every token. Matrices are [in][out], row-major.
 */

type Vector = number[];
type Weights = (name: string) => Float64Array;

/** A row's logits, one vector per token. */
export type Reference = (weights: Weights, tokens: readonly number[]) => Vector[];

const zeros = (n: number): Vector => new Array<number>(n).fill(0);
const plus = (a: Vector, b: Vector): Vector => a.map((x, i) => x + b[i]!);
const dot = (a: Vector, b: Vector): number => a.reduce((total, x, i) => total + x * b[i]!, 0);
const sigma = (x: number): number => 1 / (1 + Math.exp(-x));
const relu = (x: number): number => Math.max(x, 0);

/** x W + b */
function affine(x: Vector, W: Float64Array, b?: Float64Array): Vector {
  const out = W.length / x.length;
  return Array.from({ length: out }, (_, j) =>
    x.reduce((total, value, i) => total + value * W[i * out + j]!, b?.[j] ?? 0),
  );
}

function rowOf(table: Float64Array, row: number, width: number): Vector {
  return Array.from(table.subarray(row * width, (row + 1) * width));
}

function normed(x: Vector, gain: Float64Array, bias: Float64Array): Vector {
  const mean = x.reduce((a, b) => a + b, 0) / x.length;
  const variance = x.reduce((total, value) => total + (value - mean) ** 2, 0) / x.length;
  return x.map((value, i) => ((value - mean) / Math.sqrt(variance + 1e-5)) * gain[i]! + bias[i]!);
}

function cell(z: Vector, c: Vector, forget: number): { h: Vector; c: Vector } {
  const H = c.length;
  const next = c.map((old, j) => sigma(z[H + j]! + forget) * old + sigma(z[j]!) * Math.tanh(z[2 * H + j]!));
  return { h: next.map((value, j) => sigma(z[3 * H + j]!) * Math.tanh(value)), c: next };
}

/** Section 3: stacked LSTM layers with residual connections. */
export function lstmStack({ E, H, L }: Record<"E" | "H" | "L", number>): Reference {
  return (w, tokens) => {
    const state = Array.from({ length: L }, () => ({ h: zeros(H), c: zeros(H) }));
    return tokens.map((token) => {
      let x = rowOf(w("embedding"), token, E);
      for (let l = 0; l < L; l++) {
        const name = L === 1 ? "lstm" : `lstm${l + 1}`;
        const z = plus(affine(x, w(`${name}.Wx`), w(`${name}.b`)), affine(state[l]!.h, w(`${name}.Wh`)));
        state[l] = cell(z, state[l]!.c, 1);
        x = l === 0 ? state[l]!.h : plus(state[l]!.h, x);
      }
      return affine(x, w("output.W"));
    });
  };
}

/** Section 4: Transformer-XL with everything read so far in its memory, token by token. */
export function transformerXl(sizes: Record<"E" | "D" | "L" | "h", number>): Reference {
  const { E, D, L, h } = sizes;
  const d = D / h;
  const sinusoid = (distance: number): Vector =>
    Array.from({ length: D }, (_, i) => {
      const angle = distance / 10_000 ** ((2 * (i % (D / 2))) / D);
      return i < D / 2 ? Math.sin(angle) : Math.cos(angle);
    });
  return (w, tokens) => {
    const past: Vector[][] = Array.from({ length: L }, () => []);
    return tokens.map((token) => {
      let x = affine(rowOf(w("embedding"), token, E), w("project.W")).map((value) => value * Math.sqrt(D));
      for (let l = 0; l < L; l++) {
        const name = `layer${l + 1}`;
        past[l]!.push(x);
        const mapped = past[l]!.map((input) => affine(input, w(`${name}.qkv.W`)));
        const positions = past[l]!.map((_, j) => affine(sinusoid(past[l]!.length - 1 - j), w(`${name}.r.W`)));
        const y = zeros(D);
        for (let head = 0; head < h; head++) {
          const part = (v: Vector, of: number): Vector => v.slice(of * D + head * d, of * D + (head + 1) * d);
          const q = part(mapped.at(-1)!, 0);
          const withBias = (bias: string): Vector => plus(q, rowOf(w(bias), head, d));
          const scores = mapped.map(
            (m, j) =>
              (dot(withBias("u"), part(m, 1)) + dot(withBias("w"), part(positions[j]!, 0))) / Math.sqrt(d),
          );
          const largest = Math.max(...scores);
          const total = scores.reduce((sum, s) => sum + Math.exp(s - largest), 0);
          mapped.forEach((m, j) => {
            const p = Math.exp(scores[j]! - largest) / total;
            part(m, 2).forEach((value, i) => {
              y[head * d + i]! += p * value;
            });
          });
        }
        const middle = normed(
          plus(x, affine(y, w(`${name}.out.W`))),
          w(`${name}.norm.gain`),
          w(`${name}.norm.bias`),
        );
        const inner = affine(middle, w(`${name}.W1.W`), w(`${name}.W1.b`)).map(relu);
        x = normed(
          plus(middle, affine(inner, w(`${name}.W2.W`), w(`${name}.W2.b`))),
          w(`${name}.innerNorm.gain`),
          w(`${name}.innerNorm.bias`),
        );
      }
      const e = affine(x, w("output.project.W"));
      const table = w("embedding");
      return Array.from(w("output.b"), (bias, v) => dot(e, rowOf(table, v, E)) + bias);
    });
  };
}

/** Section 5: MNM-p. `M0` has the three layers, [in][out]. */
export function mnm(
  { E, H, m, N }: Record<"E" | "H" | "m" | "N", number>,
  M0: readonly Float64Array[],
): Reference {
  const net = (M: readonly Float64Array[], key: Vector): Vector[] => {
    const zs = [key];
    M.forEach((layer, l) => {
      const z = affine(zs[l]!, layer);
      zs.push(l === 2 ? z : z.map(Math.tanh));
    });
    return zs;
  };
  return (w, tokens) => {
    let [h, c, r] = [zeros(H), zeros(H), zeros(m)];
    const M = M0.map((layer) => layer.slice());
    return tokens.map((token) => {
      const x = [...rowOf(w("embedding"), token, E), ...r];
      const z = plus(affine(x, w("lstm.Wx"), w("lstm.bx")), affine(h, w("lstm.Wh"), w("lstm.bh")));
      ({ h, c } = cell(z, c, 0));
      const p = affine(h, w("interact.W"), w("interact.b")).map(Math.tanh);
      const beta = sigma(affine(p.slice(0, m), w("beta.W"), w("beta.b"))[0]!);
      const heads = Array.from({ length: N }, (_, i) =>
        [0, 1, 2].map((of) => p.slice(m + (3 * i + of) * m, m + (3 * i + of + 1) * m)),
      ) as [Vector, Vector, Vector][];
      const before = heads.map(([key]) => net(M, key));
      heads.forEach(([, value], i) => {
        const g = affine(value, w("targets.W"), w("targets.b"));
        M.forEach((layer, l) => {
          for (let a = 0; a < m; a++) {
            for (let b = 0; b < m; b++) {
              const error = before[i]![l + 1]![b]! - g[l * m + b]!;
              layer[a * m + b]! -= ((2 * beta) / (N * m)) * before[i]![l]![a]! * error;
            }
          }
        });
      });
      r = heads
        .map(([, , key]) => net(M, key)[3]!)
        .reduce(plus)
        .map((value) => value / N);
      return affine(affine([...h, ...r], w("out.W"), w("out.b")), w("output.W"));
    });
  };
}

/** Section 6: fast weights that attend to the recent past. */
export function jbfw({ E, n, S }: Record<"E" | "n" | "S", number>, decay: number, rate: number): Reference {
  return (w, tokens) => {
    let h = zeros(n);
    const A = Array.from({ length: n }, () => zeros(n));
    return tokens.map((token) => {
      const s = plus(affine(h, w("W")), affine(rowOf(w("embedding"), token, E), w("C.W"), w("C.b")));
      let g = s.map(relu);
      for (let j = 0; j < S; j++) {
        const now = g;
        const read = plus(
          s,
          A.map((row) => dot(row, now)),
        );
        g = normed(read, w("norm.gain"), w("norm.bias")).map(relu);
      }
      h = g;
      for (let i = 0; i < n; i++) A[i] = A[i]!.map((old, j) => decay * old + rate * h[i]! * h[j]!);
      return affine(h, w("output.W"));
    });
  };
}

/** The delta rule with one key, (elu + 1) / Σ as its feature map. */
export function deltaNet({ E, D, L, h }: Record<"E" | "D" | "L" | "h", number>): Reference {
  const d = D / h;
  const map = (x: Vector): Vector => {
    const positive = x.map((value) => (value > 0 ? value + 1 : Math.exp(value)));
    const total = positive.reduce((a, b) => a + b, 0);
    return positive.map((value) => value / total);
  };
  return (w, tokens) => {
    // S[layer][head][value][key]
    const S = Array.from({ length: L }, () =>
      Array.from({ length: h }, () => Array.from({ length: d }, () => zeros(d))),
    );
    return tokens.map((token) => {
      let x = affine(rowOf(w("embedding"), token, E), w("project.W"));
      for (let l = 0; l < L; l++) {
        const name = `layer${l + 1}`;
        const all = affine(x, w(`${name}.qkvb.W`));
        const o = S[l]!.flatMap((memory, head) => {
          const part = (of: number): Vector => all.slice(of * D + head * d, of * D + (head + 1) * d);
          const [q, k, v] = [map(part(0)), map(part(1)), part(2)];
          const beta = sigma(all[3 * D + head]!);
          memory.forEach((row, i) => {
            const update = beta * (v[i]! - dot(row, k));
            k.forEach((value, j) => {
              row[j]! += update * value;
            });
          });
          return memory.map((row) => dot(row, q) / Math.sqrt(d));
        });
        const y = normed(
          plus(x, affine(o, w(`${name}.out.W`))),
          w(`${name}.norm.gain`),
          w(`${name}.norm.bias`),
        );
        const inner = affine(y, w(`${name}.W1.W`), w(`${name}.W1.b`)).map(relu);
        x = normed(
          plus(y, affine(inner, w(`${name}.W2.W`), w(`${name}.W2.b`))),
          w(`${name}.innerNorm.gain`),
          w(`${name}.innerNorm.bias`),
        );
      }
      return affine(x, w("output.W"));
    });
  };
}
