type Reference { ExternalID : UUID; Type : String; }

@path: '/Attendance/V3'
service AttendanceV3 {
  @cds.persistence.skip
  @cds.query.limit: { default: 1000, max: 1000 }
  entity AttendanceRecords {
    key ExternalID : UUID;
    Present : Boolean;
    Absent : Boolean;
    RecordedOn : Timestamp;
    ChangeProcessName : String;
    AttendableEventStart : Timestamp;
    RecordedBy : Reference;
    Attendee : Reference;
    Event : Reference;
    AttendanceCode : Reference;
    Qualifier { MinutesLate : Integer; Comment : LargeString; };
  }
}

entity Marks {
  key ExternalID : UUID;
  Present : Boolean;
  Absent : Boolean;
  RecordedOn : Timestamp;
  ChangeProcessName : String;
  AttendableEventStart : Timestamp;
  RecordedBy_ExternalID : UUID;
  RecordedBy_Type : String;
  Attendee_ExternalID : UUID;
  Attendee_Type : String;
  Event_ExternalID : UUID;
  Event_Type : String;
  AttendanceCode_ExternalID : UUID;
  AttendanceCode_Type : String;
  Qualifier_MinutesLate : Integer;
  Qualifier_Comment : LargeString;
}
