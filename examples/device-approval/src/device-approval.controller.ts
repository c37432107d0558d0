import {
  ApiRoute,
  Caller,
  ClientRequest,
  CustomerGuard,
  type CustomerPrincipal,
  Limits,
  OAuthError,
  PublicController,
  ValidatedBody,
} from '@customer-authorization/service/grant';
import { HttpCode, Post } from '@nestjs/common';
import { DecisionBody, StartBody } from './device-approval.body.js';
import type { DEVICE_APPROVAL_LIMITS } from './device-approval.limits.js';
import { DeviceApprovals } from './device-approvals.js';
import { StartResponse } from './start.response.js';

/** A new device starts, and a signed-in customer decides about it. The new device then polls the grant. */
@PublicController('v2/customer/device_approval')
export class DeviceApprovalController {
  constructor(
    private readonly approvals: DeviceApprovals,
    private readonly limits: Limits<typeof DEVICE_APPROVAL_LIMITS>,
  ) {}

  @Post('start')
  @ApiRoute({
    summary: 'Get the codes of a new device',
    response: StartResponse,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  start(
    @ClientRequest(StartBody, { grant: 'device_approval' }) { client, body }: ClientRequest<StartBody>,
  ): Promise<StartResponse> {
    this.limits.takeForNetwork('device_approval_start');
    return this.approvals.start(client.clientId, body.organization_id);
  }

  @Post('decide')
  @ApiRoute({ summary: 'Approve or deny a new device', errors: ['429 temporarily_unavailable'] })
  @HttpCode(200)
  async decide(
    @Caller(CustomerGuard) customer: CustomerPrincipal,
    @ValidatedBody(DecisionBody) { user_code, decision }: DecisionBody,
  ): Promise<object> {
    const guesses = this.takeGuess(customer.entityId);
    const isDecided = await this.approvals.decide(customer, user_code, decision === 'approve');
    if (!isDecided) throw OAuthError.invalidRequest('user_code: no device waits with this code');
    for (const guess of guesses) guess.giveBack(); // a right code is no guess
    return {};
  }

  /** Counts a guess of the customer and of its network. */
  private takeGuess(entityId: string) {
    const ofCustomer = this.limits.take('device_approval_guess', entityId);
    try {
      return [ofCustomer, this.limits.takeForNetwork('device_approval_network_guess')];
    } catch (error) {
      ofCustomer.giveBack(); // the code was not compared, because the network has no guess left
      throw error;
    }
  }
}
