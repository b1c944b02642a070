/** Runs on real stories under other names: what they read, what they say, and that they resume to the bit. */
import { expect, test } from "vitest";
import { openStream } from "../../../src/data/sources/open.ts";
import { openStories } from "../../../src/experiment/catbabi/stories.ts";
import { expectResumable, openTiny, prepareTiny, tinySettings } from "./tinySession.ts";

const data = await prepareTiny();
const settings = tinySettings({ source: "real", sampling: { name: "fixed" }, rename: true, data });

test("other stories than without, of the same lengths and tasks", async () => {
  const plain = await openStream((await openStories({ ...settings.task, rename: false }, {})).train(1));
  const renamed = await openStream((await openStories(settings.task, {})).train(1));
  expect(renamed.storiesPerEpoch).toBe(plain.storiesPerEpoch);
  const places = Array.from({ length: plain.storiesPerEpoch }, (_, at) => at);
  const changed = places.filter((at) => {
    const [one, other] = [plain.story(0, at), renamed.story(0, at)];
    expect({ answers: other.answers, task: other.task }).toEqual({ answers: one.answers, task: one.task });
    return one.tokens.join() !== other.tokens.join();
  });
  expect(changed.length).toBeGreaterThan(places.length / 2);
});

test("a run says so, and is resumed to the bit", async () => {
  const { notes } = await openStories(settings.task, {});
  expect(notes).toContain(
    "real training stories come under other names each time: words of one kind are exchanged",
  );
  await expectResumable(() => openTiny(settings), { stops: [4], steps: 7 });
});

test("held-out stories keep their names", async () => {
  const stories = await openStories(settings.task, {});
  const plain = await openStories({ ...settings.task, rename: false }, {});
  const [one, other] = [plain, stories].map((from) => from.heldOut("valid", 1).story(0, 0));
  expect(other).toEqual(one);
});
