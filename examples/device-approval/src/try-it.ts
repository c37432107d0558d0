import { runTryIt } from 'try-it';
import { deviceApproval } from './device-approval.extension.js';

await runTryIt(deviceApproval, {
  title: 'Approve a new device',
  path: '/try/device-approval',
  grantTypes: ['device_approval'],
});
