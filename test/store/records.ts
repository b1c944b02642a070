/** Reads the records of event files, as TensorBoard does. */
import { maskedCrc32c } from "../../src/store/crc32c.ts";

/** The data of each record; a wrong checksum throws, and a last record cut by a crash is left out. */
export function decodeRecords(bytes: Uint8Array): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const records: Uint8Array[] = [];
  for (let at = 0; at + 12 <= bytes.length; ) {
    const length = Number(view.getBigUint64(at, true));
    if (view.getUint32(at + 8, true) !== maskedCrc32c(bytes.subarray(at, at + 8))) {
      throw new Error(`record ${records.length + 1}, at byte ${at}: the checksum of its length is wrong`);
    }
    if (at + 16 + length > bytes.length) break;
    const data = bytes.subarray(at + 12, at + 12 + length);
    if (view.getUint32(at + 12 + length, true) !== maskedCrc32c(data)) {
      throw new Error(`record ${records.length + 1}, at byte ${at}: the checksum of its data is wrong`);
    }
    records.push(data);
    at += 16 + length;
  }
  return records;
}
