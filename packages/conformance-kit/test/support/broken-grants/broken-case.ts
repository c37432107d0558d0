import type { Type } from '@nestjs/common';
import type { GrantKit } from '../../../src/grant-kit.js';
import type { TestService } from '../../../src/test-service.js';

export interface InterceptedRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
}

interface InterceptedResponse {
  path: string;
  status: number;
  headers: Headers;
  text: string;
}

/** Changes POST requests, and all responses, between the kit and the service. */
export interface Interception {
  request?: (sent: InterceptedRequest) => void;
  response?: (intercepted: InterceptedResponse) => void;
}

/** A grant that violates a rule, by itself or because the service is broken, and the expected report of the kit. */
export interface BrokenCase extends Partial<GrantKit> {
  description: string;
  grant: Type;
  modules: Type[];
  interception?: Interception;
  /** Breaks the service itself. */
  breakService?: (service: TestService) => void;
  /** The kit's time limit for a response, where the grant exceeds it. */
  responseTimeoutMs?: number;
  /** A part of the title of the violated rule. */
  rule: string;
  failure: RegExp;
  restore?: () => void;
}

export function interceptingFetch(
  { request, response: change }: Interception,
  fetch: typeof globalThis.fetch,
): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const sent = {
      path: url.pathname,
      headers: { ...(init.headers as Record<string, string>) },
      body: String(init.body),
    };
    const isChanged = request !== undefined && init.method === 'POST';
    if (isChanged) request(sent);
    url.pathname = decodeURI(sent.path);
    const response = await fetch(url, isChanged ? { ...init, headers: sent.headers, body: sent.body } : init);
    if (!change) return response;
    const { status, headers } = response;
    const intercepted = { path: url.pathname, status, headers: new Headers(headers), text: await response.text() };
    change(intercepted);
    const hasBody = ![204, 304].includes(intercepted.status);
    return new Response(hasBody ? intercepted.text : null, {
      status: intercepted.status,
      headers: intercepted.headers,
    });
  };
}
