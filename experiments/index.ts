/** Every experiment by name: file name, command-line name and row of the results are one string. */
import { registerExperiments } from "../src/experiment/registry.ts";
import catbabiLmFwm from "./catbabi-lm-fwm.ts";
import catbabiLmFwmDecay from "./catbabi-lm-fwm-decay.ts";
import catbabiLmFwmEndless from "./catbabi-lm-fwm-endless.ts";
import catbabiLmFwmMixed from "./catbabi-lm-fwm-mixed.ts";
import catbabiQaFwm from "./catbabi-qa-fwm.ts";
import catbabiQaFwmDecay from "./catbabi-qa-fwm-decay.ts";
import catbabiQaFwmEndless from "./catbabi-qa-fwm-endless.ts";
import catbabiQaFwmMixed from "./catbabi-qa-fwm-mixed.ts";
import catbabiQaFwmMuon from "./catbabi-qa-fwm-muon.ts";
import catbabiQaFwmReal from "./catbabi-qa-fwm-real.ts";
import catbabiQaFwmStretch from "./catbabi-qa-fwm-stretch.ts";
import { oneLayerLstm, systemExperiments } from "./catbabi-systems.ts";
import metarlFwm from "./metarl-fwm.ts";
import metarlFwmCorrected from "./metarl-fwm-corrected.ts";
import metarlFwmLessons from "./metarl-fwm-lessons.ts";
import metarlFwmTenNames from "./metarl-fwm-ten-names.ts";
import metarlFwmTuned from "./metarl-fwm-tuned.ts";
import metarlLstm512 from "./metarl-lstm-512.ts";
import metarlLstm512Tuned from "./metarl-lstm-512-tuned.ts";
import metarlLstm1024 from "./metarl-lstm-1024.ts";
import metarlLstm2048 from "./metarl-lstm-2048.ts";
import metarlLstm4096 from "./metarl-lstm-4096.ts";
import ptbAwdFwm from "./ptb-awd-fwm.ts";
import ptbAwdLstm from "./ptb-awd-lstm.ts";
import ptbAwdTxl from "./ptb-awd-txl.ts";
import { ptbFwmSmall, ptbLstmSmall, ptbTxlSmall } from "./ptb-small.ts";
import { quickstartFwm, quickstartLstm } from "./quickstart.ts";
import wt2AwdFwm from "./wt2-awd-fwm.ts";
import wt2AwdLstm from "./wt2-awd-lstm.ts";
import wt2AwdTxl from "./wt2-awd-txl.ts";
import { wt2FwmSmall } from "./wt2-small.ts";

registerExperiments({
  "catbabi-qa-fwm": catbabiQaFwm,
  "catbabi-qa-fwm-decay": catbabiQaFwmDecay,
  "catbabi-qa-fwm-muon": catbabiQaFwmMuon,
  "catbabi-qa-fwm-real": catbabiQaFwmReal,
  "catbabi-qa-fwm-mixed": catbabiQaFwmMixed,
  "catbabi-qa-fwm-endless": catbabiQaFwmEndless,
  "catbabi-qa-fwm-stretch": catbabiQaFwmStretch,
  "catbabi-lm-fwm": catbabiLmFwm,
  "catbabi-lm-fwm-decay": catbabiLmFwmDecay,
  "catbabi-lm-fwm-mixed": catbabiLmFwmMixed,
  "catbabi-lm-fwm-endless": catbabiLmFwmEndless,
  "catbabi-qa-lstm-1": oneLayerLstm,
  ...systemExperiments,
  "quickstart-fwm": quickstartFwm,
  "quickstart-lstm": quickstartLstm,
  "metarl-fwm": metarlFwm,
  "metarl-fwm-corrected": metarlFwmCorrected,
  "metarl-fwm-tuned": metarlFwmTuned,
  "metarl-fwm-lessons": metarlFwmLessons,
  "metarl-fwm-ten-names": metarlFwmTenNames,
  "metarl-lstm-512": metarlLstm512,
  "metarl-lstm-512-tuned": metarlLstm512Tuned,
  "metarl-lstm-1024": metarlLstm1024,
  "metarl-lstm-2048": metarlLstm2048,
  "metarl-lstm-4096": metarlLstm4096,
  "ptb-awd-lstm": ptbAwdLstm,
  "ptb-awd-fwm": ptbAwdFwm,
  "ptb-awd-txl": ptbAwdTxl,
  "wt2-awd-lstm": wt2AwdLstm,
  "wt2-awd-fwm": wt2AwdFwm,
  "wt2-awd-txl": wt2AwdTxl,
  "ptb-lstm-small": ptbLstmSmall,
  "ptb-fwm-small": ptbFwmSmall,
  "ptb-txl-small": ptbTxlSmall,
  "wt2-fwm-small": wt2FwmSmall,
});
