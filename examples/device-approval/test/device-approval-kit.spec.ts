import { describeGrant, describeRoute, type TestEnvironment } from 'conformance-kit';
import { deviceApproval } from '../src/device-approval.extension.js';
import { DeviceApprovalGrant } from '../src/device-approval.grant.js';

const ROUTES = '/v2/customer/device_approval';

interface Codes {
  device_code: string;
  user_code: string;
}

async function newDevice({ service, clientId: client_id, organizationId: organization_id }: TestEnvironment) {
  return (await service.post(`${ROUTES}/start`, { client_id, organization_id })).body as Codes;
}

/** A new device that a new customer has approved. */
async function approvedDevice(environment: TestEnvironment): Promise<{ device_code: string }> {
  const [{ accessToken }, { device_code, user_code }] = [await environment.newCustomer(), await newDevice(environment)];
  const decision = { user_code, decision: 'approve' };
  await environment.service.post(`${ROUTES}/decide`, decision, { Authorization: `Bearer ${accessToken}` });
  return { device_code };
}

// the rules for all grants
describeGrant(DeviceApprovalGrant, {
  ...deviceApproval,
  valid: approvedDevice,
  singleUse: true,
  boundToClient: true,
  lifetime: 600,
});

// the rules for all routes
describeRoute(`POST ${ROUTES}/start`, {
  ...deviceApproval,
  valid: ({ clientId: client_id, organizationId: organization_id }) => ({ body: { client_id, organization_id } }),
  callers: [],
  otherLimits: ['device_approval_guess', 'device_approval_network_guess'],
});

const deviceCodes = new Map<string, string>();

describeRoute(`POST ${ROUTES}/decide`, {
  ...deviceApproval,
  valid: async (environment) => {
    const { device_code, user_code } = await newDevice(environment);
    deviceCodes.set(user_code, device_code);
    return { body: { user_code, decision: 'approve' } };
  },
  redeem: ({ body }) => ({
    grant_type: 'device_approval',
    device_code: deviceCodes.get((body as Codes).user_code),
  }),
  callers: ['customer'],
  actsOn: 'own organization',
  guessable: { parameter: 'user_code', limit: 10 },
});
