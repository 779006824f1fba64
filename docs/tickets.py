"""Writes the support tickets of docs/your_data.md: python docs/tickets.py

tickets/train.csv, dev.csv and new.csv, which has no labels. All texts are invented. The last topics of each queue are not in
train.csv. tickets/wrong_labels.csv lists the rows whose label was changed on purpose.
"""

from __future__ import annotations

import csv
import io
import random
import sys
from pathlib import Path

SIZES = {"train": 400, "dev": 120, "new": 60}
WRONG = {"train": 16, "dev": 4}  # rows
KNOWN = 9  # topics of a queue in train.csv
SEED = 12

TOPICS = {  # queue: subject and message
    "billing": [
        ("Charged twice", "My card was charged twice for order {number}."),
        ("Invoice missing", "I never received the invoice for {month}."),
        ("Wrong amount", "The invoice shows {price} euros, but the price in the shop was lower."),
        ("Refund", "The refund for order {number} is still not on my bank statement."),
        ("Discount code", "The voucher I entered was not deducted from the total."),
        ("VAT number", "Please put our company's VAT number on the receipt of {month}."),
        ("Direct debit", "Your direct debit in {month} failed although the account was covered."),
        ("Subscription fee", "The yearly fee went up by {price} euros without any notice."),
        ("Payment reminder", "I got a reminder for a bill that I paid in {month}."),
        ("Instalments", "Can I pay order {number} in three instalments?"),
        ("Credit note", "You promised a credit note of {price} euros."),
        ("Paying by invoice", "Our purchasing department can only pay by bank transfer."),
        ("Strange transaction", "There is a transaction of {price} euros that I cannot explain."),
        ("Currency", "Why was I billed in dollars instead of euros?"),
    ],
    "delivery": [
        ("Where is my parcel?", "Tracking of order {number} has not changed for {days} days."),
        ("Parcel damaged", "The box was crushed and the {item} inside is broken."),
        ("Wrong item", "I ordered a {item} and something else was in the box."),
        ("Not at home", "The courier rang when nobody was home and left no card."),
        ("New address", "Please ship order {number} to my office instead."),
        ("Late", "The {item} should have arrived {days} days ago."),
        ("Left at the neighbour's", "The driver left the package with a neighbour I do not know."),
        ("Return label", "I want to send the {item} back and need a label for the return."),
        ("Incomplete", "Only one of the two boxes of order {number} came."),
        ("Express shipping", "I booked express shipping and waited {days} days."),
        ("Customs", "The shipment has been held by customs since {month}."),
        ("Pick-up point", "The pick-up point was closed when I wanted to collect the {item}."),
        ("Delivery date", "Can you tell me on which day the {item} will be dispatched?"),
        ("Stolen?", "The status says delivered, but there is nothing at my door."),
    ],
    "technical": [
        ("App crashes", "The app closes as soon as I open the {page} page."),
        ("Error 500", "The website shows error 500 when I press the button on the {page} page."),
        ("Very slow", "The {page} page takes a minute to load in Firefox."),
        ("Sync", "My {item} no longer synchronizes with the phone since the update in {month}."),
        ("Bluetooth", "The {item} loses its Bluetooth connection every {days} minutes."),
        ("Battery", "The battery of the {item} is empty after {days} hours."),
        ("Firmware", "The firmware update of the {item} stops at {days} percent."),
        ("Blank screen", "After the last release the {page} page stays white."),
        ("Printer", "The label printer prints only half of the text."),
        ("API", "Your API answers with a timeout when I request more than {number} records."),
        ("Search", "Search results on the {page} page are empty for every word."),
        ("Sound", "The speaker of the {item} crackles at high volume."),
        ("Export", "The CSV that I download from the {page} page has broken umlauts."),
        ("Notifications", "Push messages arrive {days} hours late on Android."),
    ],
    "account": [
        ("Password", "The link to reset my password never arrives."),
        ("Locked out", "My login has been locked since {month}."),
        ("Change of e-mail", "I want to log in with another e-mail address."),
        ("Delete my data", "Please delete my profile and all personal data."),
        ("Two accounts", "I registered twice by mistake, please merge both profiles."),
        ("New phone", "I lost the phone with the authenticator and cannot sign in."),
        ("Name", "I got married and need a new surname in my profile."),
        ("Add a colleague", "How do I invite {days} colleagues to our company's workspace?"),
        ("Permissions", "A former employee still has administrator rights."),
        ("Newsletter", "I unsubscribed in {month} and still get your newsletter."),
        ("Verification", "The verification code is rejected as expired at once."),
        ("Username taken", "It says that my username exists, but I never signed up."),
        ("Hacked?", "Somebody from another country signed in as me in {month}."),
        ("Owner left", "The owner of our team left; who can take over the workspace?"),
    ],
}
ASIDES = {  # sentences that belong to another queue
    "billing": ["The payment itself went through.", "I paid {price} euros for it.", "The invoice was correct this time."],
    "delivery": ["The parcel came on time.", "The {item} was delivered in {month}.", "Shipping was quick, as always."],
    "technical": ["The app works fine otherwise.", "I use the website in Firefox.", "The last update changed nothing."],
    "account": [
        "I could log in without problems.",
        "My e-mail address has not changed.",
        "I have been registered since {month}.",
    ],
}
OPENERS = ["Hello,", "Hi there,", "Good morning,", "Dear team,", "", "", "Sorry to bother you again.", "I need help."]
CONTEXTS = [
    *("I noticed this only today.", "It happened after my holiday in {month}.", "My wife has the same problem."),
    *("I tried it three times.", "This is the second time this year.", "A colleague told me to write to you."),
    *("I have been a customer for {days} years.", "I asked in the chat and got no answer.", "It used to be better.", "", ""),
]
CLOSERS = [
    *(
        "Please look into it.",
        "Can somebody call me?",
        "Thanks for your help!",
        "I need this solved by Friday.",
        "What can I do?",
    ),
    *("Kind regards", "Thank you in advance.", "I am quite annoyed.", "Please answer by e-mail.", ""),
]
VALUES = {
    "item": [
        "lamp",
        "headset",
        "coffee machine",
        "watch",
        "speaker",
        "keyboard",
        "vacuum cleaner",
        "thermostat",
        "camera",
        "scale",
    ],
    "page": ["order", "settings", "start", "basket", "report", "profile", "help", "contacts"],
    "month": ["January", "February", "March", "April", "May", "June", "September", "October", "November"],
}


def ticket(queue: str, topics: int | None, draw: random.Random) -> dict[str, str]:
    """Returns a random ticket of a queue; many mention another queue's matter, and a third have an uninformative subject."""
    subject, message = draw.choice(TOPICS[queue][:topics])
    other = draw.choice([name for name in ASIDES if name != queue])
    kind = draw.random()
    aside = draw.choice(ASIDES[other]) if kind < 0.3 else ""
    if kind > 0.9:
        aside = f"By the way: {draw.choice(TOPICS[other][:KNOWN])[1]}"
    middle = [message, aside] if kind > 0.9 or draw.random() < 0.5 else [aside, message]
    sentences = [draw.choice(OPENERS), *middle, draw.choice(CONTEXTS), draw.choice(CLOSERS)]
    values = {name: draw.choice(choices) for name, choices in VALUES.items()}
    numbers = {"number": draw.randrange(1000, 9999), "price": draw.randrange(5, 300), "days": draw.randrange(2, 60)}
    text = " ".join(sentence for sentence in sentences if sentence).format(**values, **numbers)
    vague = draw.choice(["Question", "Problem", "Urgent", "Your help, please", "Complaint"])
    return {"subject": subject if draw.random() < 0.67 else vague, "message": text, "queue": queue}


def csv_text(rows: list[dict[str, str]]) -> str:
    """Returns the text of a CSV file."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def numbered(name: str, size: int, draw: random.Random) -> list[dict[str, str]]:
    """Returns the tickets of a file: T001, T002, ... of train.csv."""
    topics = KNOWN if name == "train" else None
    tickets = (ticket(draw.choice(list(TOPICS)), topics, draw) for _ in range(size))
    return [{"ticket": f"{name[0].upper()}{number:03d}", **row} for number, row in enumerate(tickets, start=1)]


def mislabel(rows: list[dict[str, str]], count: int, draw: random.Random) -> list[dict[str, str]]:
    """Changes the labels of some rows; returns their numbers, right and written labels."""
    wrong = []
    for row in (rows[number] for number in sorted(draw.sample(range(len(rows)), count))):
        label = draw.choice([queue for queue in TOPICS if queue != row["queue"]])
        wrong.append({"ticket": row["ticket"], "right": row["queue"], "written": label})
        row["queue"] = label
    return wrong


def main() -> None:
    """Writes the files into ./tickets."""
    folder = Path("tickets")
    folder.mkdir(exist_ok=True)
    draw = random.Random(SEED)  # noqa: S311
    files = {name: numbered(name, size, draw) for name, size in SIZES.items()}
    files["wrong_labels"] = [row for name, count in WRONG.items() for row in mislabel(files[name], count, draw)]
    for row in files["new"]:
        del row["queue"]
    texts = {folder / f"{name}.csv": csv_text(rows).encode() for name, rows in files.items()}
    others = [str(path) for path, text in texts.items() if path.exists() and path.read_bytes() != text]
    if others:
        sys.exit(f"nothing was written, since these are not files of the example: {', '.join(others)}; move them elsewhere")
    for (path, text), rows in zip(texts.items(), files.values()):
        path.write_bytes(text)
        print(f"{path}: {len(rows)} rows")  # noqa: T201


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        place, why = error.filename or "tickets", error.strerror
        sys.exit(f"cannot write {place}: {why}; move what is in the way, or work in another folder")
