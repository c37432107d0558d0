import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { OAuthError } from './oauth-error.js';

const MAX_BODY_BYTES = 16 * 1024;
/** Up to this size a body that is too large is read and discarded first, so that its sender sees the error response. */
const MAX_DISCARDED_BYTES = 1024 * 1024;

/**
 * Reads a whole request body as text, whatever its Content-Type (protocol §2.4): at most 16 KiB of UTF-8.
 *
 * @throws OAuthError `payload_too_large`, `invalid_request` (compressed, broken, too slow), `Invalid message` (not UTF-8)
 */
export function readBody(request: IncomingMessage): Promise<string> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return Promise.reject(OAuthError.unsupportedEncoding());
  return new Promise((resolve, reject) => {
    const body = new BodyBytes();
    const rejectBroken = () => request.broken && reject(OAuthError.brokenRequest(request.broken));
    rejectBroken();
    request.once('broken', rejectBroken);
    request.on('data', (chunk: Buffer) => {
      body.add(chunk);
      if (body.length > MAX_DISCARDED_BYTES) {
        request.pause();
        reject(OAuthError.payloadTooLarge());
      }
    });
    request.once('end', () => {
      if (body.length > MAX_BODY_BYTES) return reject(OAuthError.payloadTooLarge());
      const bytes = body.bytes();
      if (isUtf8(bytes)) resolve(bytes.toString('utf8'));
      else reject(OAuthError.invalidMessage());
    });
    request.once('error', () => reject(OAuthError.invalidRequest('body: cut off')));
  });
}

/** At most MAX_BODY_BYTES of a body. A list of its chunks would take 6 MB for a body that is sent byte by byte. */
class BodyBytes {
  length = 0;
  private buffer: Buffer | undefined;

  add(chunk: Buffer): void {
    const offset = this.length;
    this.length += chunk.length;
    if (this.length > MAX_BODY_BYTES) return;
    if (offset === 0) {
      this.buffer = chunk; // most bodies are one chunk
      return;
    }
    if (this.buffer?.length !== MAX_BODY_BYTES) {
      const first = this.buffer;
      this.buffer = Buffer.allocUnsafeSlow(MAX_BODY_BYTES);
      first?.copy(this.buffer);
    }
    chunk.copy(this.buffer, offset);
  }

  bytes(): Buffer {
    return this.buffer?.subarray(0, this.length) ?? Buffer.alloc(0);
  }
}
