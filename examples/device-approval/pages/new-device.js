// @ts-check
/** The new device: gets its codes, shows one of them, and polls with the other. */
import encodeQR from './qr.js';
import { byId, DEMO, post, showResult } from './requests.js';

const SVG = 'http://www.w3.org/2000/svg';
/** After `slow_down` a device polls less often (RFC 8628 §3.5). */
const SLOW_DOWN_SECONDS = 5;

byId('start').addEventListener('click', async () => {
  const { status, body } = await post('/v2/customer/device_approval/start', DEMO);
  if (status !== 200) return showResult('problem', `The service responded with ${status} ${body.error}.`);
  byId('code').textContent = `${body.user_code.slice(0, 4)}-${body.user_code.slice(4)}`;
  const url = `${location.origin}/try/device-approval/decide#user_code=${body.user_code}`;
  byId('link').textContent = url;
  byId('qr').replaceChildren(qrCode(url));
  byId('codes').hidden = false;
  showResult('waiting', 'This device waits for your decision on the other device.');
  await poll(body.device_code, body.interval);
});

/** @param {string} deviceCode @param {number} intervalSeconds */
async function poll(deviceCode, intervalSeconds) {
  const request = { grant_type: 'device_approval', client_id: DEMO.client_id, device_code: deviceCode };
  for (let seconds = intervalSeconds; ; ) {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    const { status, body } = await post('/v2/customer/token', request);
    if (status === 200) return showResult('success', `Approved: this device is customer ${body.entity_id}.`);
    if (body.error === 'slow_down') seconds += SLOW_DOWN_SECONDS;
    else if (body.error !== 'authorization_pending') return showResult('problem', problemOf(body.error));
  }
}

/** @param {string} error */
function problemOf(error) {
  if (error === 'access_denied') return 'The other device denied the request.';
  if (error === 'expired_token') return 'The code has expired. Start again.';
  return `The service responded with ${error}. Start again.`;
}

/** @param {string} text */
function qrCode(text) {
  const rows = encodeQR(text, 'raw', { ecc: 'medium', border: 3 });
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${rows.length} ${rows.length}`);
  svg.setAttribute('class', 'qr');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', 'QR code: the link for the signed-in device');
  const modules = document.createElementNS(SVG, 'path');
  const drawn = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')));
  modules.setAttribute('d', drawn.join(''));
  svg.append(modules);
  return svg;
}
