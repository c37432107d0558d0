import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { OAuthError } from './oauth-error.js';

const LARGEST = 16 * 1024;
/** Up to here a body that is too large is read and thrown away, so that its sender gets to see the answer. */
const LARGEST_DISCARDED = 1024 * 1024;

/**
 * Reads a whole request body as text, whatever its Content-Type (contract, section 5): at most 16 KiB of UTF-8.
 *
 * @throws OAuthError `payload_too_large`, `invalid_request` (compressed, or cut off), `Invalid message` (not UTF-8)
 */
export function readBody(request: IncomingMessage): Promise<string> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return Promise.reject(OAuthError.unsupportedEncoding());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= LARGEST) chunks.push(chunk);
      else if (length > LARGEST_DISCARDED) {
        request.pause();
        reject(OAuthError.payloadTooLarge());
      }
    });
    request.once('end', () => {
      if (length > LARGEST) return reject(OAuthError.payloadTooLarge());
      const bytes = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      if (isUtf8(bytes)) resolve(bytes.toString('utf8'));
      else reject(OAuthError.invalidMessage());
    });
    request.once('error', () => reject(OAuthError.invalidRequest('body: cut off')));
  });
}
