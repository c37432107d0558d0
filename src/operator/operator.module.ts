import { Module } from '@nestjs/common';
import { FailedAuthentications } from './failed-authentications.js';
import { OperatorGuard } from './operator.guard.js';
import { OperatorCredentials } from './operator-credentials.js';

@Module({
  providers: [OperatorCredentials, OperatorGuard, FailedAuthentications],
  exports: [OperatorCredentials, OperatorGuard, FailedAuthentications],
})
export class OperatorModule {}
