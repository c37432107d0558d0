import {
  describeGrant,
  describeRoute,
  type PendingProof,
  type TestEnvironment,
} from '@customer-authorization/conformance-kit';
import { DeviceApprovalGrant } from '../src/device-approval.grant.js';
import { INTERVAL_SECONDS } from '../src/device-approvals.js';
import extension from '../src/index.js';

const ROUTES = '/v2/customer/device_approval';

interface Codes {
  device_code: string;
  user_code: string;
}

async function newDevice({ service, clientId: client_id, organizationId: organization_id }: TestEnvironment) {
  return (await service.post(`${ROUTES}/start`, { client_id, organization_id })).body as Codes;
}

/** A new device that no customer has approved. */
async function pendingDevice(environment: TestEnvironment): Promise<PendingProof> {
  const [{ accessToken }, { device_code, user_code }] = [await environment.newCustomer(), await newDevice(environment)];
  const headers = { Authorization: `Bearer ${accessToken}` };
  const confirm = () => environment.service.post(`${ROUTES}/decide`, { user_code, decision: 'approve' }, headers);
  return { parameters: { device_code }, confirm, intervalSeconds: INTERVAL_SECONDS };
}

/** A new device that a new customer has approved. */
async function approvedDevice(environment: TestEnvironment): Promise<object> {
  const { parameters, confirm } = await pendingDevice(environment);
  await confirm();
  return parameters;
}

// the rules for all grants
describeGrant(DeviceApprovalGrant, {
  ...extension,
  valid: approvedDevice,
  pending: pendingDevice,
});

// the rules for all routes
describeRoute(`POST ${ROUTES}/start`, {
  ...extension,
  valid: ({ clientId: client_id, organizationId: organization_id }) => ({ body: { client_id, organization_id } }),
  callers: [],
});

describeRoute(`POST ${ROUTES}/decide`, {
  ...extension,
  valid: async (environment) => ({
    body: { user_code: (await newDevice(environment)).user_code, decision: 'approve' },
  }),
  callers: ['customer'],
  actsOn: 'own organization',
});
