"""Token formats of chat, mail, payment and other web services."""

from __future__ import annotations

from lopen.base.secret_formats.shape import Format

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

CHAT_AND_MAIL = (
    Format("slack_token", ("xox",),
           r"xox[abcdeoprs]-[A-Za-z0-9%-]{10,250}", "xoxb-{d12}-{d13}-{w24}"),
    Format("slack_token", ("xoxe.xox",), r"xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,250}", "xoxe.xoxp-1-{w146}"),
    Format("slack_token", ("xapp-",), r"xapp-[0-9]-[A-Z0-9]{8,20}-[0-9]{8,20}-[a-z0-9]{50,80}",
           "xapp-1-A{u10}-{d13}-{h64}"),
    Format("slack_webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows|triggers)/"
           r"(?P<s>[A-Za-z0-9+/]{20,100})", "https://hooks.slack.com/services/T{u8}/B{u8}/{w24}"),
    Format("discord_webhook", ("/api/webhooks/",), r"/api/webhooks/[0-9]{17,20}/(?P<s>[A-Za-z0-9_-]{60,80})",
           "https://discord.com/api/webhooks/{d18}/{b68}"),
    Format("discord_token", (".",), r"(?<=[MNO][A-Za-z0-9_-]{23})\.[A-Za-z0-9_-]{6}\.(?P<s>[A-Za-z0-9_-]{27,38})"
           r"(?![A-Za-z0-9_.-])", "M{w23}.{w6}.{w38}", bits=3.5),
    Format("telegram_token", (":AA",), r"(?<=[0-9]{8}):(?P<s>AA[A-Za-z0-9_-]{32,33})(?![A-Za-z0-9_-])",
           "{d10}:AA{b33}", bits=3.0),
    Format("teams_webhook", (".webhook.office.com/",), r"\.webhook\.office\.com/webhookb2/(?P<s>[a-f0-9-]{36}@"
           r"[a-f0-9-]{36}/IncomingWebhook/[a-f0-9]{32}/[A-Za-z0-9_/-]{36,120})",
           "https://acme.webhook.office.com/webhookb2/{h8}-{h4}-{h4}-{h4}-{h12}@{h8}-{h4}-{h4}-{h4}-{h12}"
           "/IncomingWebhook/{h32}/{h8}-{h4}-{h4}-{h4}-{h12}"),
    Format("sendgrid_key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,60}", "SG.{b22}.{b43}"),
    Format("mailgun_key", ("key-",), r"(?<!-)key-[a-f0-9]{32}\b", "key-{h32}", bits=2.5),
    Format("mailchimp_key", ("-us",), r"[a-f0-9]{32}-us[0-9]{1,2}\b", "{h32}-us12", bits=2.5, lead=32),
    Format("brevo_key", ("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}\b",
           "xkeysib-{h64}-{w16}"),
    Format("resend_key", ("re_",), r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b", "re_{w8}_{w24}", bits=3.0),
    Format("twilio_key", ("SK",), r"SK[a-f0-9]{32}\b", "SK{h32}", bits=2.5),
)  # fmt: skip

PAYMENT = (
    Format("stripe_key", ("k_live_", "k_test_", "k_prod_"), r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}\b",
           "sk_live_{w24}", lead=1),
    Format("stripe_webhook_secret", ("whsec_",), r"whsec_[A-Za-z0-9+/]{24,80}={0,2}", "whsec_{w32}", bits=2.5),
    Format("square_token", ("sq0",), r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}",
           "sq0atp-{b22}"),
    Format("square_token", ("EAAA",), r"EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])", "EAAA{b60}", bits=4.0),
    Format("paypal_token", ("access_token$",), r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}\b",
           "access_token$production${l16}${h32}"),
    Format("flutterwave_key", ("FLWSECK",), r"FLWSECK(?:_TEST)?-[a-z0-9]{12,40}(?:-X)?\b", "FLWSECK-{h32}-X"),
    Format("plaid_token", ("access-sandbox-", "access-production-"), r"access-(?:sandbox|production)-" + _UUID + r"\b",
           "access-production-{h8}-{h4}-{h4}-{h4}-{h12}"),
    Format("shopify_token", ("shp",),
           r"shp(?:at|ca|pa|ss|tka|ua)_[a-fA-F0-9]{32}\b", "shpat_{h32}"),
    Format("razorpay_key", ("rzp_",), r"rzp_(?:live|test)_[A-Za-z0-9]{14}\b", "rzp_live_{w14}"),
    Format("easypost_key", ("EZAK", "EZTK"), r"EZ[AT]K[A-Za-z0-9]{54}\b", "EZAK{w54}"),
    Format("shippo_token", ("shippo_",), r"shippo_(?:live|test)_[a-f0-9]{40}\b",
           "shippo_live_{h40}"),
)  # fmt: skip

PRODUCTIVITY = (
    Format("notion_token", ("ntn_",), r"ntn_[0-9]{11}[A-Za-z0-9]{35}\b", "ntn_{d11}{w35}"),
    Format("notion_token", ("secret_",), r"secret_(?=[A-Za-z]{0,42}[0-9])[A-Za-z0-9]{43}\b", "secret_{w43}", bits=3.5),
    Format("linear_key", ("lin_",), r"lin_(?:api_[A-Za-z0-9]{40}|oauth_[a-f0-9]{64})\b",
           "lin_api_{w40}"),
    Format("airtable_token", ("pat",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b", "pat{w14}.{h64}"),
    Format("figma_token", ("figd_",), r"figd_[A-Za-z0-9_-]{38,60}", "figd_{b40}"),
    Format("typeform_token", ("tfp_",), r"tfp_[A-Za-z0-9_.=-]{40,70}", "tfp_{b59}"),
    Format("contentful_token", ("CFPAT-",), r"CFPAT-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", "CFPAT-{b43}"),
    Format("hubspot_token", ("pat-",), r"pat-(?:na|eu|ap)[0-9]-" + _UUID + r"\b",
           "pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}"),
    Format("dropbox_token", ("sl.",), r"sl\.(?:u\.)?[A-Za-z0-9_-]{120,2000}", "sl.{b138}"),
    Format("facebook_token", ("EAA",), r"EAA[A-Z][A-Za-z0-9]{80,300}\b", "EAACEdEose0cBA{w150}"),
    Format("twitter_token", ("AAAAAAAAAAAAAAAAAAAAA",), r"A{21,24}[A-Za-z0-9]{3,20}(?:%[0-9A-F]{2}[A-Za-z0-9]{1,60}){1,6}",
           "AAAAAAAAAAAAAAAAAAAAA{w8}%2F{w20}%3D{w40}"),
    Format("mapbox_token", ("sk.eyJ", "tk.eyJ"), r"[st]k\.eyJ[A-Za-z0-9_-]{40,300}\.[A-Za-z0-9_-]{20,30}",
           "sk.eyJ{w70}.{b22}"),
    Format("adobe_client_secret", ("p8e-",), r"p8e-[A-Za-z0-9_-]{28,36}(?![A-Za-z0-9_-])", "p8e-{h32}", bits=2.5),
    Format("readme_key", ("rdme_",), r"rdme_[a-z0-9]{70}\b", "rdme_{l70}"),
    Format("duffel_token", ("duffel_",), r"duffel_(?:live|test)_[A-Za-z0-9_=-]{43}",
           "duffel_live_{b43}"),
)  # fmt: skip
