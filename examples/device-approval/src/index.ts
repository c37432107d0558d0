import { defineExtension } from '@customer-authorization/service/grant';
import { DeviceApprovals1795500000000 } from './1795500000000-device-approvals.js';
import { DeviceApprovalController } from './device-approval.controller.js';
import { DeviceApproval } from './device-approval.entity.js';
import { DeviceApprovalGrant } from './device-approval.grant.js';
import { DEVICE_APPROVAL_LIMITS } from './device-approval.limits.js';
import { DeviceApprovalParticipant } from './device-approval-participant.js';
import { DeviceApprovals } from './device-approvals.js';

/** What this package adds to the service. EXTENSION names this file. */
export default defineExtension({
  grants: [DeviceApprovalGrant],
  controllers: [DeviceApprovalController],
  providers: [DeviceApprovals],
  entities: [DeviceApproval],
  migrations: [DeviceApprovals1795500000000],
  participants: [DeviceApprovalParticipant],
  limits: DEVICE_APPROVAL_LIMITS,
});
