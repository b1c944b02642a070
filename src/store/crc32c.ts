/**
 * CRC-32C (Castagnoli), the checksum of TensorBoard's record files, eight bytes at a time.
 *
 * Reflected polynomial 0x82F63B78; check values in RFC 3720, appendix B.4.
 */

const polynomial = 0x82f63b78;

/** tables[k * 256 + b]: the checksum of byte b followed by k zero bytes. */
const tables = makeTables();

function makeTables(): Uint32Array {
  const t = new Uint32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    t[byte] = crc;
  }
  for (let i = 256; i < t.length; i++) t[i] = (t[i - 256]! >>> 8) ^ t[t[i - 256]! & 0xff]!;
  return t;
}

/** The CRC-32C of some bytes, as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  const t = tables;
  let crc = 0xffffffff;
  let i = 0;
  for (const end = bytes.length - 7; i < end; i += 8) {
    crc ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    crc =
      t[1792 + (crc & 0xff)]! ^
      t[1536 + ((crc >>> 8) & 0xff)]! ^
      t[1280 + ((crc >>> 16) & 0xff)]! ^
      t[1024 + (crc >>> 24)]! ^
      t[768 + bytes[i + 4]!]! ^
      t[512 + bytes[i + 5]!]! ^
      t[256 + bytes[i + 6]!]! ^
      t[bytes[i + 7]!]!;
  }
  for (; i < bytes.length; i++) crc = t[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * The checksum as record files store it: rotated and shifted, so that a checksum stored among data that is
 * itself checksummed does not fall into CRC's fixed points.
 */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
