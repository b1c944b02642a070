/** The paper's tables as data: Schlag, Munkhdalai and Schmidhuber, ICLR 2021. */

/** A mean over seeds and its spread. */
export interface PublishedMean {
  readonly mean: number;
  readonly std: number;
}

/** A column of table 1. */
export interface PublishedSystem {
  readonly title: string;
  readonly qa: { readonly accuracy: PublishedMean; readonly perplexity: PublishedMean };
  readonly lm: { readonly accuracy: PublishedMean; readonly perplexity: PublishedMean };
  readonly weights: string;
  readonly activations: string;
}

const of = (mean: number, std: number): PublishedMean => ({ mean, std });

/** Table 1: test accuracy (%) and perplexity over three seeds, by the name that our systems have. */
export const table1: Readonly<Record<string, PublishedSystem>> = {
  jbfw: {
    title: "JBFW",
    qa: { accuracy: of(13.22, 0), perplexity: of(31.19, 8.8) },
    lm: { accuracy: of(0, 0), perplexity: of(160.3, 24.3) },
    weights: "548k",
    activations: "263k",
  },
  lstm: {
    title: "LSTM",
    qa: { accuracy: of(80.88, 0.3), perplexity: of(1.93, 0.11) },
    lm: { accuracy: of(80.15, 0.4), perplexity: of(1.84, 0.02) },
    weights: "8M",
    activations: "4096",
  },
  "transformer-xl": {
    title: "TXL",
    qa: { accuracy: of(87.66, 2.82), perplexity: of(1.5, 0.14) },
    lm: { accuracy: of(90.23, 1.01), perplexity: of(1.39, 0.03) },
    weights: "10.5M",
    activations: "4.3M",
  },
  mnm: {
    title: "MNM",
    qa: { accuracy: of(88.97, 6.28), perplexity: of(2.5, 1.07) },
    lm: { accuracy: of(69.3, 16.6), perplexity: of(2.6, 1.02) },
    weights: "1.1M",
    activations: "30.5k",
  },
  fwm: {
    title: "FWM",
    qa: { accuracy: of(96.75, 0.05), perplexity: of(1.36, 0.06) },
    lm: { accuracy: of(93.04, 0.62), perplexity: of(1.45, 0.14) },
    weights: "694k",
    activations: "33.3k",
  },
};

/** Table 2: perplexity, the best of three seeds. Theirs is AWD-LSTM's own paper; null where none is given. */
export const table2: Readonly<
  Record<string, { readonly title: string; readonly valid: number | null; readonly test: number | null }>
> = {
  "ptb-awd-lstm": { title: "AWD-LSTM (Merity et al.)", valid: 60.0, test: 57.3 },
  "ptb-awd-txl": { title: "AWD-TXL", valid: 59.39, test: 56.5 },
  "ptb-awd-fwm": { title: "AWD-FWM", valid: 56.76, test: 54.48 },
  "wt2-awd-lstm": { title: "AWD-LSTM (Merity et al.)", valid: 68.6, test: 65.8 },
  "wt2-awd-txl": { title: "AWD-TXL", valid: 65.73, test: 63.11 },
  "wt2-awd-fwm": { title: "AWD-FWM", valid: 63.98, test: 61.65 },
};

/** A seed of the appendix's table: perplexity of every split. */
export interface PublishedSeed {
  readonly seed: number;
  readonly train: number;
  readonly valid: number;
  readonly test: number;
}

/** The appendix's table of language models, every seed. */
export const appendixTable: Readonly<Record<string, readonly PublishedSeed[]>> = {
  "ptb-awd-fwm": [
    { seed: 141, train: 16.77, valid: 56.76, test: 54.48 },
    { seed: 142, train: 14.26, valid: 57.43, test: 55.17 },
    { seed: 143, train: 23.66, valid: 59.31, test: 56.9 },
  ],
  "wt2-awd-fwm": [
    { seed: 1881, train: 27.8, valid: 68.74, test: 65.07 },
    { seed: 1882, train: 16.66, valid: 63.98, test: 61.65 },
    { seed: 1883, train: 26.6, valid: 68.39, test: 64.91 },
  ],
  "ptb-awd-txl": [
    { seed: 2, train: 17.62, valid: 59.71, test: 56.63 },
    { seed: 3, train: 17.84, valid: 59.39, test: 56.5 },
    { seed: 1111, train: 17.52, valid: 59.73, test: 56.53 },
  ],
  "wt2-awd-txl": [
    { seed: 444, train: 13.6, valid: 65.71, test: 63.28 },
    { seed: 555, train: 13.66, valid: 65.83, test: 63.4 },
    { seed: 666, train: 13.62, valid: 65.73, test: 63.11 },
  ],
};

/** The first epochs of the authors' logs: validation perplexity at batch 10, a column for each of their seeds. */
export interface PublishedEpochs {
  readonly seeds: readonly number[];
  /** Entry i is of epoch i + 1. */
  readonly epochs: readonly (readonly number[])[];
}

/** The first ten epochs of every language model whose logs were released by epoch. */
export const publishedEpochs: Readonly<Record<string, PublishedEpochs>> = {
  "ptb-awd-fwm": {
    seeds: [141, 142, 143],
    epochs: [
      [312.61, 440.67, 314.11],
      [234.12, 238.41, 222.4],
      [193.28, 187.73, 223.56],
      [163.58, 162.55, 194.36],
      [149.72, 145.74, 186.66],
      [136.62, 133.63, 187.29],
      [132.17, 127.11, 171.67],
      [120.89, 120.36, 162.63],
      [132.39, 126.36, 157.75],
      [119.85, 124.74, 142.02],
    ],
  },
  "ptb-awd-txl": {
    seeds: [2, 3, 1111],
    epochs: [
      [370.4, 373.6, 361.1],
      [234.5, 238.2, 232.2],
      [187.4, 187.6, 187.0],
      [162.2, 161.4, 165.1],
      [147.2, 148.9, 147.3],
      [136.5, 135.8, 137.0],
      [126.1, 127.9, 128.5],
      [120.8, 122.1, 123.3],
      [115.8, 117.5, 117.8],
      [111.5, 112.7, 113.5],
    ],
  },
  "wt2-awd-fwm": {
    seeds: [1881, 1882, 1883],
    epochs: [
      [430.01, 457.4, 494.5],
      [643.03, 305.16, 352.56],
      [321.22, 336.15, 263.62],
      [308.1, 265.76, 218.07],
      [278.57, 234.33, 192.27],
      [241.42, 215.86, 179.26],
      [226.21, 199.86, 159.77],
      [212.66, 188.05, 149.69],
      [197.19, 178.34, 181.19],
      [187.64, 171.79, 150.17],
    ],
  },
};
