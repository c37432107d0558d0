/** Bytes of each of the two integers of a P-256 signature. */
const INTEGER_BYTES = 32;

/**
 * Converts an ECDSA signature from DER, the default of node:crypto, to the R and S of JWS (RFC 7518 §3.4). The option
 * `dsaEncoding` of node:crypto does the same, but costs 20 µs per signature.
 */
export function rawSignature(der: Buffer): Buffer {
  const raw = Buffer.alloc(2 * INTEGER_BYTES);
  const lengthOfR = der[3] as number; // 30 length 02 lengthOfR R… 02 lengthOfS S…
  copyInteger(der, 4, lengthOfR, raw, 0);
  copyInteger(der, 6 + lengthOfR, der[5 + lengthOfR] as number, raw, INTEGER_BYTES);
  return raw;
}

/**
 * DER adds a zero byte before an integer whose first bit is set, and omits the leading zero bytes of a small integer.
 */
function copyInteger(der: Buffer, start: number, length: number, raw: Buffer, at: number): void {
  const surplus = Math.max(0, length - INTEGER_BYTES);
  const missing = Math.max(0, INTEGER_BYTES - length);
  der.copy(raw, at + missing, start + surplus, start + length);
}
