import type { Extension } from 'customer-authorization-service';
import { DeviceApprovals1795500000000 } from './1795500000000-device-approvals.js';
import { DEVICE_APPROVAL_LIMITS } from './device-approval.limits.js';
import { DeviceApprovalModule } from './device-approval.module.js';

/** What this package adds to the service. */
export const deviceApproval: Extension = {
  name: 'device_approval',
  modules: [DeviceApprovalModule],
  migrations: [DeviceApprovals1795500000000],
  limits: DEVICE_APPROVAL_LIMITS,
};
