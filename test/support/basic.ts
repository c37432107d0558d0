/** The header by which a client or resource server shows its secret (RFC 6749 section 2.3.1). */
export function basic(id: string, secret: string): { authorization: string } {
  const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}
