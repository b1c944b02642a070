/** An LSTM layer in plain loops, forward and backward: the equations once more, sharing no code with the graph. */

/** Sizes: time, batch, input, hidden. */
export interface LstmSizes {
  readonly T: number;
  readonly B: number;
  readonly E: number;
  readonly H: number;
}

/** Arrays of a layer. Wx [E][4H], Wh [H][4H] and b [4H] in row-major order, gates i, f, g, o. */
export interface LstmArrays {
  readonly x: Float64Array;
  readonly h0: Float64Array;
  readonly c0: Float64Array;
  readonly Wx: Float64Array;
  readonly Wh: Float64Array;
  readonly b: Float64Array;
  /** Added inside the forget gate. */
  readonly forget: number;
  /** [T][B]; 0 where the state passes through. */
  readonly mask?: Float64Array;
}

/** The weights of Σ coef · h + Σ coefC · c_T, the loss that is differentiated. */
export interface LstmLoss {
  readonly coef: Float64Array;
  readonly coefC: Float64Array;
}

const sigma = (z: number): number => 1 / (1 + Math.exp(-z));

/** Outputs, last state and the gradients of the loss. */
export function lstmReference({ T, B, E, H }: LstmSizes, arrays: LstmArrays, loss: LstmLoss) {
  const { x, Wx, Wh, b, forget, mask } = arrays;
  const zeros = (n: number): Float64Array => new Float64Array(n);
  // hs[t] and cs[t] are the states before step t.
  const hs = [arrays.h0];
  const cs = [arrays.c0];
  const gates: Float64Array[] = [];
  const out = zeros(T * B * H);
  for (let t = 0; t < T; t++) {
    const [h, c] = [hs[t]!, cs[t]!];
    const [nextH, nextC] = [h.slice(), c.slice()];
    const gate = zeros(B * 4 * H);
    for (let r = 0; r < B; r++) {
      for (let j = 0; j < 4 * H; j++) {
        let z = b[j]!;
        for (let e = 0; e < E; e++) z += x[(t * B + r) * E + e]! * Wx[e * 4 * H + j]!;
        for (let k = 0; k < H; k++) z += h[r * H + k]! * Wh[k * 4 * H + j]!;
        const which = Math.floor(j / H);
        if (which === 1) z += forget;
        gate[r * 4 * H + j] = which === 2 ? Math.tanh(z) : sigma(z);
      }
      if (mask && mask[t * B + r] === 0) continue;
      for (let k = 0; k < H; k++) {
        const [i, f, g, o] = [0, 1, 2, 3].map((n) => gate[r * 4 * H + n * H + k]!) as [
          number,
          number,
          number,
          number,
        ];
        nextC[r * H + k] = f * c[r * H + k]! + i * g;
        nextH[r * H + k] = o * Math.tanh(nextC[r * H + k]!);
      }
    }
    gates.push(gate);
    hs.push(nextH);
    cs.push(nextC);
    out.set(nextH, t * B * H);
  }

  const dWx = zeros(Wx.length);
  const dWh = zeros(Wh.length);
  const db = zeros(4 * H);
  const dx = zeros(x.length);
  let dh = zeros(B * H);
  let dc: Float64Array = loss.coefC.slice();
  for (let t = T - 1; t >= 0; t--) {
    for (let n = 0; n < B * H; n++) dh[n]! += loss.coef[t * B * H + n]!;
    const [beforeH, beforeC] = [zeros(B * H), zeros(B * H)];
    for (let r = 0; r < B; r++) {
      if (mask && mask[t * B + r] === 0) {
        for (let k = 0; k < H; k++) {
          beforeH[r * H + k] = dh[r * H + k]!;
          beforeC[r * H + k] = dc[r * H + k]!;
        }
        continue;
      }
      const dz = zeros(4 * H);
      for (let k = 0; k < H; k++) {
        const at = r * H + k;
        const [i, f, g, o] = [0, 1, 2, 3].map((n) => gates[t]![r * 4 * H + n * H + k]!) as [
          number,
          number,
          number,
          number,
        ];
        const u = Math.tanh(cs[t + 1]![at]!);
        const dcHere = dc[at]! + dh[at]! * o * (1 - u * u);
        dz[k] = dcHere * g * i * (1 - i);
        dz[H + k] = dcHere * cs[t]![at]! * f * (1 - f);
        dz[2 * H + k] = dcHere * i * (1 - g * g);
        dz[3 * H + k] = dh[at]! * u * o * (1 - o);
        beforeC[at] = dcHere * f;
      }
      for (let j = 0; j < 4 * H; j++) {
        db[j]! += dz[j]!;
        for (let e = 0; e < E; e++) {
          dWx[e * 4 * H + j]! += x[(t * B + r) * E + e]! * dz[j]!;
          dx[(t * B + r) * E + e]! += Wx[e * 4 * H + j]! * dz[j]!;
        }
        for (let k = 0; k < H; k++) {
          dWh[k * 4 * H + j]! += hs[t]![r * H + k]! * dz[j]!;
          beforeH[r * H + k]! += Wh[k * 4 * H + j]! * dz[j]!;
        }
      }
    }
    [dh, dc] = [beforeH, beforeC];
  }
  return { y: out, h: hs[T]!, c: cs[T]!, gradients: { Wx: dWx, Wh: dWh, b: db, x: dx, h0: dh, c0: dc } };
}
