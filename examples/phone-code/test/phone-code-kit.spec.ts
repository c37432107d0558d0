import { describeGrant, describeRoute, type TestEnvironment } from '@customer-authorization/conformance-kit';
import extension from '../src/index.js';
import { PhoneCodeGrant } from '../src/phone-code.grant.js';
import { codeFor, GATEWAY } from './gateway-of-tests.js';
import { newPhone } from './new-phone.js';

const ROUTE = '/v2/customer/phone_code';

const startOf = ({ clientId, organizationId }: TestEnvironment, phone: string) => ({
  client_id: clientId,
  organization_id: organizationId,
  phone,
});

async function proofOf(phone: string, environment: TestEnvironment): Promise<object> {
  await environment.service.post(ROUTE, startOf(environment, phone));
  return { phone, code: codeFor(phone) };
}

// the rules for all grants
describeGrant(PhoneCodeGrant, {
  ...extension,
  upstream: GATEWAY,
  valid: (environment) => proofOf(newPhone(), environment),
  again: ({ phone }, environment) => proofOf(`${phone}`, environment),
});

// the rules for all routes
describeRoute(`POST ${ROUTE}`, {
  ...extension,
  upstream: GATEWAY,
  callers: [],
  valid: (environment) => ({ body: startOf(environment, newPhone()) }),
});
