import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdentityModule } from 'customer-authorization-service/grant';
import { DeviceApprovalController } from './device-approval.controller.js';
import { DeviceApproval } from './device-approval.entity.js';
import { DeviceApprovalGrant } from './device-approval.grant.js';
import { DeviceApprovalParticipant } from './device-approval-participant.js';
import { DeviceApprovals } from './device-approvals.js';
import { TryItController } from './try-it/try-it.controller.js';

@Module({
  imports: [IdentityModule, TypeOrmModule.forFeature([DeviceApproval])],
  controllers: [DeviceApprovalController, TryItController],
  providers: [DeviceApprovals, DeviceApprovalGrant, DeviceApprovalParticipant],
})
export class DeviceApprovalModule {}
