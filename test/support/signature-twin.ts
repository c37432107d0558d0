/** The order of the curve P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** The second valid signature: for the numbers (r, s) of ECDSA, (r, order - s) is valid too. */
export function twinOf(signature: Buffer): Buffer {
  const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
  return Buffer.concat([signature.subarray(0, 32), Buffer.from((ORDER - s).toString(16).padStart(64, '0'), 'hex')]);
}

/** A token that ES256 signs, with its second valid signature. */
export function withTwin(token: string): string {
  const end = token.lastIndexOf('.') + 1;
  return token.slice(0, end) + twinOf(Buffer.from(token.slice(end), 'base64url')).toString('base64url');
}
