import { runTryIt } from '@customer-authorization/try-it';
import extension from './index.js';

await runTryIt(extension, {
  title: 'Approve a new device',
  path: '/try/device-approval',
  grantTypes: ['device_approval'],
});
