import { type KeyObject, verify } from 'node:crypto';

/** Bytes of each of the two integers of a P-256 signature. */
const INTEGER_BYTES = 32;
/** The longest signature in DER: both integers have an added zero byte. */
const MAX_DER_BYTES = 72;
/** DER's tags of a sequence and of an integer. */
const [SEQUENCE_TAG, INTEGER_TAG] = [0x30, 0x02];

/**
 * Converts an ECDSA signature from DER, the default of node:crypto, to the R and S of JWS (RFC 7518 §3.4). The option
 * `dsaEncoding` of node:crypto does the same, but costs 60 µs per signature (docs/performance.md).
 */
export function rawSignature(der: Buffer): Buffer {
  const raw = Buffer.alloc(2 * INTEGER_BYTES);
  const lengthOfR = der[3] as number; // 30 length 02 lengthOfR R… 02 lengthOfS S…
  copyInteger(der, 4, lengthOfR, raw, 0);
  copyInteger(der, 6 + lengthOfR, der[5 + lengthOfR] as number, raw, INTEGER_BYTES);
  return raw;
}

/** Whether `raw`, the R and S of JWS, is a signature of the text by this key. */
export function isSignatureValid(raw: Buffer, text: string, publicKey: KeyObject): boolean {
  return raw.length === 2 * INTEGER_BYTES && verify('sha256', Buffer.from(text), publicKey, derSignature(raw));
}

/** The opposite of `rawSignature`, for the same reason. */
export function derSignature(raw: Buffer): Buffer {
  const der = Buffer.allocUnsafe(MAX_DER_BYTES);
  const endOfR = appendInteger(raw, 0, der, 2);
  const end = appendInteger(raw, INTEGER_BYTES, der, endOfR);
  der[0] = SEQUENCE_TAG;
  der[1] = end - 2;
  return der.subarray(0, end);
}

/**
 * DER adds a zero byte before an integer whose first bit is set, and omits the leading zero bytes of a small integer.
 */
function copyInteger(der: Buffer, start: number, length: number, raw: Buffer, at: number): void {
  const surplus = Math.max(0, length - INTEGER_BYTES);
  const missing = Math.max(0, INTEGER_BYTES - length);
  der.copy(raw, at + missing, start + surplus, start + length);
}

/** @returns the end of the integer in `der` */
function appendInteger(raw: Buffer, from: number, der: Buffer, to: number): number {
  const last = from + INTEGER_BYTES - 1;
  let start = from;
  while (start < last && raw[start] === 0) start++;
  let at = to + 2;
  if ((raw[start] as number) >= 0x80) der[at++] = 0;
  at += raw.copy(der, at, start, last + 1);
  der[to] = INTEGER_TAG;
  der[to + 1] = at - to - 2;
  return at;
}
