/** AWD-LSTM on WikiText-2 by its authors' recipe. */
import { textExperiment } from "../src/experiment/text/settings.ts";
import { awdLstmWt2 } from "../src/model/awdLstm.ts";
import ptb from "./ptb-awd-lstm.ts";

export default textExperiment({
  description: "WikiText-2, AWD-LSTM, the official recipe without finetuning",
  settings: {
    task: { ...ptb.settings.task, dataset: "wikitext-2" },
    system: awdLstmWt2,
    training: {
      ...ptb.settings.training,
      seed: 1882,
      batch: 80,
      // 750 epochs of about 386 windows.
      steps: 289_500,
    },
  },
  smoke: ptb.smoke,
  // As the paper quotes it; its authors' program reaches 68.7 and 65.6 without finetuning.
  paper: { valid: 68.6, test: 65.8 },
});
