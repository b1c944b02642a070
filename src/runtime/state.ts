/** State that stays between runs: parameters, optimizer moments, recurrent state; shared by programs. */
import { DataError, nearest, ShapeError, UsageError } from "../errors.ts";
import type { Initial, StateAttrs } from "../graph/ops/source.ts";
import { sameShape, showType, sizeOf } from "../graph/tensor.ts";
import { keyOf, normal, uniform } from "../random.ts";
import { allocate, fillFrom, type HostData, type HostTensor } from "./host.ts";

/** Two buffers per name: a run reads one and writes the other, then they change places. Nothing is copied. */
interface Slot {
  current: HostTensor;
  spare: HostTensor | undefined;
}

/** Named tensors that programs read and replace. */
export class State {
  /** Runs under way, and whether one of them replaces values. */
  private running = 0;
  private writing = false;
  private readonly slots = new Map<string, Slot>();

  /** Random initial values are drawn under this seed and the tensor's name. */
  constructor(readonly seed = 0) {}

  /** Names in the order in which programs declared them. */
  names(): string[] {
    return [...this.slots.keys()];
  }

  /** Whether there is a tensor of that name. */
  has(name: string): boolean {
    return this.slots.has(name);
  }

  /** The current values. They change with the next run that updates them: copy what has to last. */
  get(name: string): HostTensor {
    return this.slot(name).current;
  }

  /** Makes room for a tensor and gives it its initial values, unless it is there already. */
  declare({ name, shape, dtype, initial }: StateAttrs): void {
    const known = this.slots.get(name)?.current;
    if (!known) {
      const current = allocate(shape, dtype);
      fill(current.data, initial, name, this.seed);
      this.slots.set(name, { current, spare: undefined });
    } else if (known.dtype !== dtype || !sameShape(known.shape, shape)) {
      throw new ShapeError(`state ${name}: two programs disagree about its type`, {
        before: showType(known),
        now: showType({ shape, dtype }),
      });
    }
  }

  /** Gives a tensor its initial values again, declared first if it is not there. */
  reset(attrs: StateAttrs): void {
    this.declare(attrs);
    const { current } = this.slot(attrs.name);
    current.data.fill(0 as never);
    fill(current.data, attrs.initial, attrs.name, this.seed);
  }

  /** Copies values in. */
  set(name: string, values: ArrayLike<number>): void {
    const { current } = this.slot(name);
    if (values.length !== sizeOf(current.shape)) {
      throw new ShapeError(`state ${name}: ${values.length} values given`, { expected: showType(current) });
    }
    fillFrom(`state ${name}`, current, values);
  }

  /** Copies of the tensors whose name passes `filter`, e.g. to save them. */
  snapshot(filter: (name: string) => boolean = () => true): Map<string, HostTensor> {
    const copies = new Map<string, HostTensor>();
    for (const [name, { current }] of this.slots) {
      if (filter(name)) copies.set(name, { ...current, data: current.data.slice() });
    }
    return copies;
  }

  /**
   * Takes over saved values; `source` names the file in errors. Every declared name that passes `filter` must
   * be there with its type and finite values, and nothing else. Nothing is changed unless everything fits.
   */
  load(
    values: ReadonlyMap<string, HostTensor>,
    { source = "state", filter = () => true }: { source?: string; filter?: (name: string) => boolean } = {},
  ): void {
    const wanted = this.names().filter(filter);
    for (const name of wanted) {
      const given = values.get(name);
      const { current } = this.slot(name);
      if (!given)
        throw new DataError(`${source}: tensor ${name} is missing`, { expected: showType(current) });
      if (given.dtype !== current.dtype || !sameShape(given.shape, current.shape)) {
        throw new DataError(`${source}: tensor ${name} has another type`, {
          expected: showType(current),
          found: showType(given),
          hint: "the file belongs to a model of other sizes",
        });
      }
      requireFinite(given, name, source);
    }
    for (const name of values.keys()) {
      if (!wanted.includes(name)) {
        throw new DataError(`${source}: tensor ${name} is not part of this model`, {
          "did you mean": nearest(name, wanted).join(", "),
        });
      }
    }
    for (const name of wanted)
      (this.slot(name).current.data as Float32Array).set(values.get(name)!.data as Float32Array);
  }

  /** Marks a run under way; `writes` when it will replace values. Gives what ends it. */
  begin(writes: boolean): () => void {
    if (this.writing || (writes && this.running > 0)) {
      throw new UsageError("run: another run with the same state has not ended", {
        hint: "await each run before the next one; for runs side by side give each a State of its own",
      });
    }
    this.running++;
    this.writing = writes;
    return () => {
      this.running--;
      this.writing = false;
    };
  }

  /** The buffer the next value of a tensor is written into. */
  spare(name: string): HostTensor {
    const slot = this.slot(name);
    slot.spare ??= allocate(slot.current.shape, slot.current.dtype);
    return slot.spare;
  }

  /** Makes what was written into the spare buffer the current value. */
  swap(name: string): void {
    const slot = this.slot(name);
    [slot.current, slot.spare] = [slot.spare!, slot.current];
  }

  private slot(name: string): Slot {
    const slot = this.slots.get(name);
    if (!slot) {
      throw new UsageError(`state ${name} does not exist`, {
        "did you mean": nearest(name, this.names()).join(", "),
      });
    }
    return slot;
  }
}

function requireFinite({ data }: HostTensor, name: string, source: string): void {
  if (!(data instanceof Float32Array)) return;
  const at = data.findIndex((value) => !Number.isFinite(value));
  if (at >= 0) {
    throw new DataError(`${source}: tensor ${name} holds ${data[at]} at position ${at}`, {
      hint: "the run that wrote it had diverged; use an earlier checkpoint",
    });
  }
}

function fill(data: HostData, initial: Initial, name: string, seed: number): void {
  if (initial.kind === "zeros") return;
  const key = keyOf(seed, "state", name);
  for (let i = 0; i < data.length; i++) {
    const value = initialValue(initial, key, i);
    if (data instanceof BigInt64Array) data[i] = BigInt(value);
    else data[i] = value;
  }
}

function initialValue(
  initial: Exclude<Initial, { kind: "zeros" }>,
  key: ReturnType<typeof keyOf>,
  i: number,
): number {
  switch (initial.kind) {
    case "constant":
      return initial.value;
    case "values":
      return initial.data[i]!;
    case "uniform":
      return initial.low + (initial.high - initial.low) * uniform(key, i);
    case "normal":
      return initial.mean + initial.std * normal(key, i);
  }
}
