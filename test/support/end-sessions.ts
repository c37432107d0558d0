import { bearer } from './authorization-headers.js';
import { manage } from './management-api.js';
import type { TestResponse, TestService } from './test-service.js';

export const END_SESSIONS = '/v2/customer/end_sessions';

/** Ends all sessions of a customer, with the access token of the customer or of an agent. */
export function endSessions(
  service: TestService,
  token: string,
  body: object = {},
  headers: Record<string, string> = {},
): Promise<TestResponse> {
  return service.post(END_SESSIONS, body, { ...bearer(token), ...headers });
}

/** Ends all sessions of a customer as the operator. */
export function endSessionsAsOperator(
  service: TestService,
  adminToken: string,
  entityId: string,
  body?: object,
): Promise<TestResponse> {
  return manage(service, 'POST', `/admin/customers/${entityId}/end_sessions`, bearer(adminToken), body);
}
