'use client'; // the server renders the placeholder, and only the browser requests a token

import { errorText, leaveThisBrowser } from '@customer-authorization/browser-client';
import { useEffect, useState } from 'react';
import { tokens } from './tokens.js';

/** Calls an API as the customer. Here it is the service itself. */
async function loadText() {
  const response = await tokens.fetch(`${tokens.url}/v2/customer/info`);
  if (!response.ok) return `The API responded with ${response.status}.`;
  const { entity_id } = await response.json();
  return `You are the customer ${entity_id}.`;
}

async function leave() {
  await leaveThisBrowser(tokens);
  location.reload();
}

export function Chat() {
  const [text, setText] = useState('…');
  useEffect(() => {
    loadText().catch(errorText).then(setText);
  }, []);
  return (
    <section>
      <p>{text}</p>
      <button type="button" onClick={() => loadText().catch(errorText).then(setText)}>
        Load again
      </button>
      <button type="button" onClick={() => leave().catch((error) => setText(errorText(error)))}>
        Leave this browser
      </button>
    </section>
  );
}
