import type { IncomingMessage } from 'node:http';
import { headerValues } from '../../platform/request-context/request-context.js';

/** The credentials of a request (RFC 9110 §11.4), by their scheme. Without a valid header, all schemes are absent. */
export interface Authorization {
  bearer?: string | undefined;
  basic?: string | undefined;
  isRepeated: boolean;
}

/** One scheme and one text. A proxy may join several headers by commas, so a comma is no part of the text. */
const CREDENTIALS = /^(bearer|basic) +([^\s,]+)$/i;

/** Every route reads `Authorization` here only. `undefined` if the request has no such header. */
export function authorizationOf(request: Pick<IncomingMessage, 'rawHeaders'>): Authorization | undefined {
  const values = headerValues(request, 'authorization');
  if (values.length === 0) return undefined;
  const isRepeated = values.length > 1;
  const [, scheme = '', text] = (isRepeated ? null : CREDENTIALS.exec(values[0] as string)) ?? [];
  return scheme.toLowerCase() === 'basic' ? { basic: text, isRepeated } : { bearer: text, isRepeated };
}
