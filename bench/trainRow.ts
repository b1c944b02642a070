/** One row of `fwm bench train`, in a process of its own: the specification comes as JSON, the row goes out as JSON. */
import { measureRow, type RowSpec } from "./train.ts";

const row = await measureRow(JSON.parse(process.argv[2]!) as RowSpec);
process.stdout.write(JSON.stringify(row), () => process.exit(0));
