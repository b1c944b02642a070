/** `fwm data prepare stories`: stories of one's own, in bAbI's format, become data to train on. */
import { basename, join, resolve } from "node:path";
import { splitNames } from "../data/catbabi.ts";
import { table, thousands } from "../report/table.ts";
import { command } from "./command.ts";
import { folder, integer, number, text } from "./params.ts";
import { shellLine } from "./shell.ts";

/** The command. */
export const prepareStoriesCommand = command({
  name: "stories",
  summary: "Turn stories of your own, in bAbI's format, into streams ready to train on.",
  details:
    "Lines are 'ID words.' and 'ID words?<TAB>answer', with any words; a story begins where the ID is 1 again. A folder " +
    "has a file per task and split (kinship_train.txt, kinship_valid.txt, kinship_test.txt), or train.txt, valid.txt and " +
    "test.txt; a single file is split by shares of its stories. The experiments catbabi-… train on it with --data.",
  examples: [
    {
      line: "fwm data prepare stories --from my-stories --out my-data",
      trial: "fwm data prepare stories --from $STORIES --out $EMPTY/my-stories",
    },
    {
      line: "fwm data prepare stories --from kinship.txt --valid-share 0.1 --test-share 0.2",
      trial: "fwm data prepare stories --from $STORIES/kinship.txt --valid-share 0.1 --test-share 0.2",
    },
  ],
  options: {
    from: text({ required: true, placeholder: "file or folder", help: "the stories" }),
    validShare: number({ default: 0.1, help: "share of the stories for valid, where it has no file" }),
    testShare: number({ default: 0.1, help: "share of the stories for test, where it has no file" }),
    seed: integer({ default: 1, help: "seed of which stories go where" }),
    vocabulary: folder({ help: "a prepared folder whose words are used, for a model trained on it" }),
    out: folder({ help: "the folder to write; one with prepared data is replaced" }),
  },
  run: async ({ options, out, env }) => {
    const { dataRoot } = await import("../data/sources/prepare.ts");
    const { headerName, writePrepared } = await import("../data/sources/prepared.ts");
    const { prepareOwnStories } = await import("../data/sources/ownStories.ts");
    const { checkReplaceable } = await import("../data/sources/replace.ts");
    const { nodeFileSystem } = await import("../store/atomic.ts");
    const name = basename(resolve(options.from)).replace(/\.txt$/, "");
    const path = options.out ?? join(dataRoot(env), `stories-${name}`);
    await checkReplaceable(path, headerName);
    const { provenance, vocabulary, splits } = await prepareOwnStories({
      ...options,
      onNote: (note) => out.note(note),
    });
    const header = await writePrepared(path, provenance, splits, nodeFileSystem, vocabulary);
    out.result({ path, ...header }, () => {
      const rows = splitNames.map((split) => {
        const { stories, questions, tokens } = header.splits[split];
        return [split, stories, questions, tokens];
      });
      const tasks = header.tasks.map((task, i) => [header.names![i]!, ...countsOf(task)]);
      return [
        table([["split", "stories", "questions", "tokens"], ...rows]),
        table([["task: stories", ...splitNames], ...tasks]),
        `vocabulary ${thousands(header.vocabulary.size)}; written to ${path}`,
        `next: ${shellLine("fwm", "train", "catbabi-qa-fwm", "--data", path)}`,
      ].join("\n");
    });

    function countsOf(task: number): number[] {
      return splitNames.map((split) => splits[split].counts().perTask.get(task)?.stories ?? 0);
    }
  },
});
