/** A client id and secret, as `client_secret_basic` sends them. */
export interface BasicCredentials {
  id: string;
  secret: string;
}

/**
 * Reads an `Authorization: Basic` header (RFC 7617), whose two parts are form-urlencoded (RFC 6749 section 2.3.1).
 *
 * @returns `undefined` when it is not one, or is malformed
 */
export function readBasicCredentials(header: string | undefined): BasicCredentials | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const [, id, secret] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? [];
  if (id === undefined || secret === undefined) return undefined;
  try {
    return { id: formDecoded(id), secret: formDecoded(secret) };
  } catch {
    return undefined;
  }
}

function formDecoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
