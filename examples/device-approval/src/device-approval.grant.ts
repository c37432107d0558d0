import {
  type Grant,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OAuthError,
} from '@customer-authorization/service/grant';
import { PollBody } from './device-approval.body.js';
import { DeviceApprovals } from './device-approvals.js';

/** A new device polls with its code, and gets a token for the customer that approved it (RFC 8628 §3.4 and §3.5). */
@GrantType('device_approval', { body: PollBody, polling: true, form: true, lifetime: 600, endsWith: 'caller' })
export class DeviceApprovalGrant implements Grant<PollBody> {
  constructor(private readonly approvals: DeviceApprovals) {}

  async grant({ body: { device_code }, client }: GrantRequest<PollBody>): Promise<GrantResult> {
    const approval = await this.approvals.find(device_code, client.clientId);
    if (!approval) throw OAuthError.invalidGrant('no device of this client has this code');
    const { organization_id: organizationId, entity_id: entityId, proof } = approval;
    if (approval.is_expired) throw OAuthError.expiredToken();
    if (entityId === null) {
      if (await this.approvals.notePoll(device_code)) throw OAuthError.authorizationPending();
      throw OAuthError.slowDown();
    }
    if (!approval.is_approved || proof === null) throw OAuthError.accessDenied();
    if (!(await this.approvals.redeem(device_code))) throw OAuthError.invalidGrant('a code that was redeemed before');
    return { entityId, organizationId, proof };
  }
}
