import { Delete, Param } from '@nestjs/common';
import { RequiredRole } from '../../../http/callers/operator.guard.js';
import { operatorActor } from '../../../http/callers/operator-credentials.js';
import { ApiRoute, apiPropertyOf } from '../../../platform/http/api-route.js';
import { OrganizationEntry } from '../../../registry/entries/organization.entry.js';
import { OffboardingRequests } from '../offboarding/offboarding-requests.js';
import { AdminController } from './admin-controller.js';

@AdminController('organizations/:id/offboarding')
export class OffboardingController {
  constructor(private readonly requests: OffboardingRequests) {}

  @Delete()
  @RequiredRole('all')
  @ApiRoute({
    summary: 'Cancel the off-boarding of an organization',
    description:
      'Nothing is erased then, and the organization stays suspended. The response is the same if it was not being off-boarded.',
    pathParameters: { id: apiPropertyOf(OrganizationEntry, 'id') },
    errors: ['409 conflict'],
  })
  async cancel(@Param('id') id: string): Promise<object> {
    await this.requests.cancel(id, operatorActor());
    return {};
  }
}
