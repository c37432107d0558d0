/** The client id and the secret of `client_secret_basic`. */
export interface BasicCredentials {
  id: string;
  secret: string;
}

/**
 * Reads an `Authorization: Basic` header (RFC 7617). Both parts are form-urlencoded (RFC 6749 §2.3.1).
 *
 * @returns `undefined` if the header is missing, malformed or of another scheme
 */
export function readBasicCredentials(header: string | undefined): BasicCredentials | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const [, id, secret] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? [];
  if (id === undefined || secret === undefined) return undefined;
  try {
    return { id: decodeFormValue(id), secret: decodeFormValue(secret) };
  } catch {
    return undefined;
  }
}

function decodeFormValue(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}
