/**
 * bAbI stories: their file format, the reader that answers them, the generator that writes new ones, and the
 * statistics that compare the two.
 */
export {
  describeFilling,
  type FileSize,
  type FilledTask,
  fillMissing,
  officialTrainingSize,
} from "./fill.ts";
export {
  formatLine,
  formatStories,
  type Line,
  parseLine,
  parseStories,
  type Question,
  type Statement,
  type Story,
  type StorySource,
  storyTokens,
} from "./format.ts";
export {
  generateStories,
  generateStory,
  streamStory,
  taskOfStory,
  tasks,
  trainingStories,
} from "./generator/generate.ts";
export type { Answer } from "./reader/answer.ts";
export { answerStory, StoryReader } from "./reader/reader.ts";
export { type Exception, type Score, type Solution, solveStories } from "./reader/solve.ts";
export {
  compareStatistics,
  countStories,
  type Spread,
  type StatisticsRow,
  statisticsReport,
  statisticsTable,
  type TaskComparison,
  type TaskStatistics,
  totalVariation,
} from "./statistics.ts";
