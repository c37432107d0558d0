import { Injectable } from '@nestjs/common';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import { TokenInspection } from '../access-token/token-inspection.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { IntrospectionResponse } from './introspection-response.js';

/** Hints about the form of the text that the caller sent. They disclose nothing about a token. */
const FORM_HINTS: Partial<Record<InactiveReason, string>> = {
  no_region: 'token: the region prefix is missing; send the whole token, REGION:JWS',
  percent_encoded: 'token: replace %3A by a colon',
};

/** Reports to a resource server or the operator whether a token is active (RFC 7662). */
@Injectable()
export class TokenIntrospection {
  constructor(private readonly tokens: TokenInspection) {}

  /**
   * Reports a token as inactive if it is invalid, has ended or is for another audience. The log line of the request
   * gets the reason.
   *
   * @param audiences the audiences whose tokens the resource server may introspect; `undefined` means the operator, who
   * may introspect all tokens and learns the reason
   */
  async introspect(token: string, audiences: string[] | undefined): Promise<IntrospectionResponse> {
    const { claims, inactiveReason } = await this.tokens.inspect(token, audiences);
    if (!inactiveReason) return { active: true, token_type: 'Bearer', ...claims };
    const response = inactive(inactiveReason);
    return audiences === undefined ? { ...response, inactive_reason: inactiveReason } : response;
  }
}

function inactive(reason: InactiveReason): IntrospectionResponse {
  requestContext.set({ reason });
  const hint = FORM_HINTS[reason];
  return { active: false, ...(hint !== undefined && { error_hint: hint }) };
}
