/** Bytes of each of the two numbers of a P-256 signature. */
const INTEGER_BYTES = 32;

/**
 * An ECDSA signature from DER, which node:crypto makes, to the two numbers side by side that JWS wants (
 * RFC 7518 §3.4). node:crypto converts by itself if asked to; that costs 20 µs a signature, this does not show.
 */
export function rawSignature(der: Buffer): Buffer {
  const raw = Buffer.alloc(2 * INTEGER_BYTES);
  const lengthOfR = der[3] as number; // 30 length 02 lengthOfR R… 02 lengthOfS S…
  copyNumber(der, 4, lengthOfR, raw, 0);
  copyNumber(der, 6 + lengthOfR, der[5 + lengthOfR] as number, raw, INTEGER_BYTES);
  return raw;
}

/** DER leads a number with a zero byte where its first bit is set, and leaves zero bytes away where it is small. */
function copyNumber(der: Buffer, start: number, length: number, raw: Buffer, at: number): void {
  const surplus = Math.max(0, length - INTEGER_BYTES);
  const missing = Math.max(0, INTEGER_BYTES - length);
  der.copy(raw, at + missing, start + surplus, start + length);
}
