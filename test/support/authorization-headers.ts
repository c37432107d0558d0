/** The header with the credentials of a client or resource server (RFC 6749 §2.3.1). */
export function basic(id: string, secret: string): { authorization: string } {
  const pair = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** The header with the access token of a caller (RFC 6750 §2.1). */
export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}
