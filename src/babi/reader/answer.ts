/** What every part of the reader gives back: an answer and the statements it follows from. */
export interface Answer {
  /** One token, as the files write it in lower case: `garden`, `apple,milk`, `n,w`, `maybe`. */
  readonly answer: string;
  /** IDs of the statements used, in the order the files list them. */
  readonly supports: readonly number[];
  /** Other answers that the same words allow; the reader takes the one stated last. */
  readonly alternatives?: readonly string[];
}
