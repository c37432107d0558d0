import { json } from 'node:stream/consumers';
import type { Upstream } from '@customer-authorization/conformance-kit';

const messages = new Map<string, string>();

/** A gateway that remembers the last message to each phone. */
export const GATEWAY: Upstream = {
  variable: 'PHONE_CODE_GATEWAY_URL',
  respond: async (request, response) => {
    const { phone, text } = (await json(request)) as { phone: string; text: string };
    messages.set(phone, text);
    response.end();
  },
};

/** The code of the last message to a phone. */
export const codeFor = (phone: string): string => messages.get(phone)?.slice(-6) ?? '';
