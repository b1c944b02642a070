/** A system of one's own: registered in time it is in the schema, afterwards registering is refused. */
import { expect, test } from "vitest";
import { z } from "zod";
import { UsageError } from "../../src/errors.ts";
import { lstmModel } from "../../src/model/lstmModel.ts";
import { registerSystem, systemNames, systemSchema } from "../../src/model/registry.ts";
import type { System } from "../../src/model/sequence.ts";

const own = <N extends string>(name: N): System<{ name: N }> => ({
  schema: z.strictObject({ name: z.literal(name) }) as never,
  build: () => lstmModel({ vocabulary: 3, embedding: 2, hidden: 2 }),
  flops: () => 0,
});

test("registerSystem before and after settings were parsed", () => {
  registerSystem("early", own("early"));
  expect(systemSchema.parse({ name: "early" })).toEqual({ name: "early" });
  expect(() => registerSystem("late", own("late"))).toThrow(UsageError);
  expect(() => registerSystem("late", own("late"))).toThrow(
    /late comes too late, settings were already parsed/,
  );
  expect(systemNames()).not.toContain("late");
});
