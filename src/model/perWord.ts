/** What is made of single tokens, made once per word where words repeat. */
import { gatherRows, sizeOf, type Tensor } from "../graph/index.ts";

/** Tokens for each row of an embedding from which on a window goes through the table of all words. */
const tokensPerRow = 4;

/**
 * `map` of the embedded tokens: ids i32 [T, B] and an embedding [V, E] give [T, B, ·]. In a window that has each word
 * several times, `map` is applied to the embedding and its rows are picked: products of T · B rows become ones of V.
 */
export function perWord(embedding: Tensor, tokens: Tensor, map: (x: Tensor) => Tensor): Tensor {
  const repeats = sizeOf(tokens.shape) >= tokensPerRow * embedding.shape[0]!;
  return repeats ? gatherRows(map(embedding), tokens) : map(gatherRows(embedding, tokens));
}
