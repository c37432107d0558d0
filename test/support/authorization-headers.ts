/** The header by which a client or resource server shows its secret (RFC 6749 section 2.3.1). */
export function basic(id: string, secret: string): { authorization: string } {
  const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** The header by which a caller shows an access token (RFC 6750 section 2.1). */
export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}
