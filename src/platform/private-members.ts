/**
 * All private members of Node and other packages that are used. Any version may change them. Then tests of the code
 * that uses them fail, and for `_host` those of database-tls.e2e-spec.ts.
 */
import type { Socket } from 'node:net';
import { defaultMetadataStorage } from 'class-transformer/cjs/storage.js';

/** Sets the host that Node verifies in a certificate if the caller names none. A DNS lookup sets it otherwise. */
export function setVerifiedHost(socket: Socket, host: string): Socket {
  return Object.assign(socket, { _host: host });
}

/** The classes of `@Type`. */
export const transformerMetadata = defaultMetadataStorage;
